# A host where systemd runs the server.
. "$HOSTS/server.sh"
mkdir -p /opt/ipamd/bin && ln -s "$(command -v ipamd)" /opt/ipamd/bin/ipamd
