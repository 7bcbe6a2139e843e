"""Prints the reference page of the metrics."""

import sys

from ipamd.metrics.page import page

sys.stdout.write(page())
