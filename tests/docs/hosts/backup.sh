# A host where systemd runs the server, with a pool and a pod.
. "$HOSTS/run.sh"
ipamctl pool create web --subnet 10.1.0.0/24 --gateway 10.1.0.1 >/dev/null
ipamctl reservation add web shop/db-0 --container-id c1 --node node-1 >/dev/null
mkdir -p /srv/backup
