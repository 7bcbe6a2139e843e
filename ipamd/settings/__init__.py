"""Owns the server's settings: one table feeds defaults, file, environment, flags, checks and the reference page."""

from ipamd.settings.config import Config
from ipamd.settings.flags import settings_options
from ipamd.settings.kinds import Endpoint
from ipamd.settings.load import Host, SettingsError, load
from ipamd.settings.table import TABLE, Setting

__all__ = ["TABLE", "Config", "Endpoint", "Host", "Setting", "SettingsError", "load", "settings_options"]
