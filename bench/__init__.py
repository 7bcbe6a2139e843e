"""Measurements of a running ipamd, each beside what is asked of it: `python -m bench`."""
