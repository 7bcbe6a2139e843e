. "$HOSTS/server.sh"
# A node whose containers have had their addresses from host-local: from the real plugin, with its files.
cp "$CNI_BIN/host-local" /opt/cni/bin/
pods=/etc/cni/net.d/10-pods.conflist
page_block json >"$pods"
for container in 4be1 77aa 9c02; do
    cni ADD "$pods" "$container" eth0 >/dev/null
done
# A pod ends, and another one starts.
cat >/run/story <<STORY
set -e
cni DEL $pods 4be1 eth0
cni ADD $pods d00d eth0 "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-1"
STORY
