# A host with nothing on it: sourced before a page begins. Nothing of it is seen outside of its namespaces.
mount --make-rprivate /
layers=$(mktemp -d) && mount -t tmpfs tmpfs "$layers"
for place in /etc /opt /root /run /srv /var/lib; do
    mkdir -p "$layers$place/upper" "$layers$place/work"
    mount -t overlay overlay -o "lowerdir=$place,upperdir=$layers$place/upper,workdir=$layers$place/work" "$place"
done
ip link set lo up
hostname node-1
mkdir -p /opt/cni/bin /etc/cni/net.d /var/lib/cni
# clone: the project as one gets it, and be in it.
clone() {
    mkdir ~/ipamd && cd ~/ipamd
    for name in pyproject.toml README.md LICENSE ipamd cli contrib migrations docker-compose.yml; do
        cp -r "$ROOT/$name" .
    done
}
# offline: there is no network here; pip finds what is installed for the tests instead of PyPI's.
offline() {
    mkdir /run/site && ln -s "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"/* /run/site
    rm -rf /run/site/ipamd* /run/site/__editable__* /run/site/*.pth
    export PYTHONPATH=/run/site PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0
}
# page_block KIND: what the page shows in its first block of that kind.
page_block() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p;}" "$PAGE"
}
cd ~
