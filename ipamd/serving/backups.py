"""Owns putting backups together: the state of this member, and where and when its settings want them."""

from __future__ import annotations

from ipamd.service import Services
from ipamd.service.backups import Backups, Schedule
from ipamd.serving.own import Own
from ipamd.storage.backups import BackupFiles
from ipamd.storage.database import FILE_NAME as DATABASE_FILE

_SCRATCH = "sending.backup"


def backups_of(own: Own, services: Services) -> Backups:
    """The backups of this member. What a crash has left of one that was being sent goes."""
    config, files = own.config, BackupFiles(own.config.data_dir / DATABASE_FILE)
    scratch = config.data_dir / _SCRATCH
    files.remove(scratch)
    schedule = None
    if config.backup_dir is not None:
        schedule = Schedule(config.backup_dir, config.backup_every_s, config.backup_keep)
    return Backups(
        files,
        services.reader,
        services.clock,
        scratch=scratch,
        schedule=schedule,
        cluster_id=lambda: own.machine.cluster_id,
    )
