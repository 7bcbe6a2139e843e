# Where a server runs, with the certificates that it was given; its kubectl stands in for a cluster's.
. "$HOSTS/server.sh"
clone
ipamctl tls init >/dev/null
