# A server of one, and a place for its backups.
. "$HOSTS/run.sh"
mkdir -p /srv/backup
