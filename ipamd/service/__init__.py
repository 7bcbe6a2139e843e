"""The use cases: what can be asked of ipamd, without a framework and without I/O of their own."""

from __future__ import annotations

from ipamd.service.services import Services

__all__ = ["Services"]
