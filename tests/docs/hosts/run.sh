# A host where systemd runs the server.
. "$HOSTS/server.sh"
mkdir -p /opt/ipamd/bin && ln -sf "$(command -v ipamd)" /opt/ipamd/bin/ipamd
