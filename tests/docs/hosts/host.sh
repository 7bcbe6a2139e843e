# A host with ipamd: sourced before a page begins. Nothing of it is seen outside of its namespaces.
mount --make-rprivate /
layers=$(mktemp -d) && mount -t tmpfs tmpfs "$layers"
for place in /etc /opt /root /run /var/lib; do
    mkdir -p "$layers$place/upper" "$layers$place/work"
    mount -t overlay overlay -o "lowerdir=$place,upperdir=$layers$place/upper,workdir=$layers$place/work" "$place"
done
ip link set lo up
hostname node-1
mkdir -p /opt/cni/bin /etc/cni/net.d /var/lib/cni
ipamd serve --node-name node-1 >/run/ipamd.log 2>&1 &
is_ready() {
    (exec 3<>/dev/tcp/127.0.0.1/7480 && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && grep -q '^HTTP/1.. 200' <&3) 2>/dev/null
}
for _ in $(seq 300); do
    is_ready && break
    sleep 0.1
done
is_ready || { cat /run/ipamd.log; exit 1; }
ipamctl cni install >/dev/null
# page_block KIND: what the page shows in its first block of that kind.
page_block() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p;}" "$PAGE"
}
