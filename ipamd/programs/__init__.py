"""Owns the commands of the program `ipamd`, a module each, so that none loads what only another needs."""
