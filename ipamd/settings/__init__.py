"""Owns the settings: one table a program feeds defaults, file, environment, flags, checks and the reference page."""

from ipamd.settings.agent import AGENT_TABLE
from ipamd.settings.config import AgentConfig, Config
from ipamd.settings.flags import agent_options, settings_options
from ipamd.settings.kinds import Endpoint
from ipamd.settings.load import Host, SettingsError, load, load_agent
from ipamd.settings.table import TABLE, Setting

__all__ = [
    "AGENT_TABLE",
    "TABLE",
    "AgentConfig",
    "Config",
    "Endpoint",
    "Host",
    "Setting",
    "SettingsError",
    "agent_options",
    "load",
    "load_agent",
    "settings_options",
]
