# A host with a server and a clone.
. "$HOSTS/server.sh"
clone
