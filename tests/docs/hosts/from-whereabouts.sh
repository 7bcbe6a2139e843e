. "$HOSTS/server.sh"
# A cluster whose pods have had their addresses from whereabouts, as kubectl shows it.
touch /opt/cni/bin/whereabouts
page_block yaml >/run/storage.yaml
# A pod that whereabouts knew starts again on this node, and a new one is made.
cat >/run/story <<'STORY'
set -e
python3 -c 'import yaml; print(yaml.safe_load(open("/run/storage.yaml"))["spec"]["config"])' >/run/storage.json
cni ADD /run/storage.json f00d net1 "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0"
cni ADD /run/storage.json beef net1 "K8S_POD_NAMESPACE=default;K8S_POD_NAME=new-0"
STORY
