# A server on the host, and its plugin.
ipamd serve --node-name node-1 >/run/ipamd.log 2>&1 &
echo $! >/run/ipamd.pid
is_ready() {
    (exec 3<>/dev/tcp/127.0.0.1/7480 && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && grep -q '^HTTP/1.. 200' <&3) 2>/dev/null
}
for _ in $(seq 900); do
    is_ready && break
    sleep 0.1
done
is_ready || { cat /run/ipamd.log; exit 1; }
ipamctl cni install >/dev/null
