# A machine with a clone, a network of its own, and nothing that runs.
offline
clone
cp contrib/podman/storage.conflist /etc/cni/net.d/10-web.conflist
sed -i 's/"storage"/"web"/' /etc/cni/net.d/10-web.conflist
export IPAMD_NODE_NAME=node-1  # a host has it by its own name, but this one may be in a container
