"""Prints the reference page of the settings."""

import sys

from ipamd.settings.page import page

sys.stdout.write(page())
