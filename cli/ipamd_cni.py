#!/usr/bin/python3 -IS
"""The CNI IPAM plugin of ipamd: hands a call to the node socket and prints the answer. It decides nothing itself.

One file, standard library only, syntax of Python 3.6, and no import but built-in modules: a container runtime starts
it for every pod, so its start is what it costs. VERSION and a missing or unknown CNI_COMMAND are answered here,
everything else by the server, whose answer is printed byte for byte: exit status 0 for a result, 1 for a CNI error
object. Without CNI_COMMAND it says on stderr what it is, with exit status 0, or 2 when it was given arguments.

Variables go into headers percent-encoded (everything outside visible ASCII, and `%`), so that none can end a header.
Settings: `/etc/ipamd/cni.conf`, or the file that IPAMD_CNI_CONF names; IPAMD_CNI_ADDRESS is stronger than its
`address` line. The time-out covers connecting, sending and receiving, but not the resolver behind a `tcp:` name.
"""

import posix
import time

# First of all: whether this call came before or after a DEL of its attachment is decided by this moment.
# 7 is CLOCK_BOOTTIME; Python 3.6 lacks its name and the function in ns.
STARTED_NS = time.clock_gettime_ns(7) if hasattr(time, "clock_gettime_ns") else int(time.clock_gettime(7) * 1e9)

import _socket  # noqa: E402 - after the start was taken

VERSIONS = b'"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"'
COMMANDS = (b"ADD", b"DEL", b"CHECK", b"GC", b"STATUS")
VARIABLES = (
    (b"CNI_CONTAINERID", b"CNI-ContainerID"),
    (b"CNI_NETNS", b"CNI-Netns"),
    (b"CNI_IFNAME", b"CNI-IfName"),
    (b"CNI_ARGS", b"CNI-Args"),
    (b"CNI_PATH", b"CNI-Path"),
)
SETTINGS = (b"address", b"token-file", b"timeout", b"node", b"cluster", b"status", b"insecure")
CONF = b"/etc/ipamd/cni.conf"
ADDRESS = b"unix:/run/ipamd/cni.sock"
BOOT_ID = b"/proc/sys/kernel/random/boot_id"
MARK = b"application/cni+json"
MAX_STDIN_BYTES = 1 << 20
MAX_ANSWER_BYTES = 1 << 20
MAX_HEADER_BYTES = 16000  # the server takes 16 KiB
VISIBLE = bytes(range(0x21, 0x7F)).replace(b"%", b"")
GONE = 8 | 16 | 32  # POLLERR, POLLHUP, POLLNVAL


class Failure(Exception):  # noqa: N818 - what the call ends in; the error object is made from it
    """No answer to print: `code` and `msg` of the error object; `sent`: the server may have carried the call out."""

    def __init__(self, code: int, msg: str, sent: bool = False) -> None:
        Exception.__init__(self, msg)
        self.code = code
        self.sent = sent


def main() -> int:
    """Carry out the call that the environment describes; the exit status."""
    command = posix.environ.get(b"CNI_COMMAND", b"")
    if not command:
        return about()
    if command == b"VERSION":
        emit(b'{"cniVersion": "1.1.0", "supportedVersions": [%s]}\n' % VERSIONS)
        return 0
    body = b""
    try:
        if command in COMMANDS:
            body = read_stdin()
            return call(command, body)
        emit(error_object(4, f"CNI_COMMAND {text(command)} is unknown", body))
    except Failure as failure:
        emit(error_object(failure.code, str(failure), body))
    except Exception as error:  # noqa: BLE001 - the edge of the process: a runtime understands nothing but JSON
        emit(error_object(11, f"the plugin failed: {error!r}", body))
    return 1


def about() -> int:
    """Say what this is to somebody who ran it by hand, perhaps in place of the server."""
    posix.write(
        2,
        b"ipamd: this is the CNI IPAM plugin, which container runtimes run with CNI_COMMAND set.\n"
        b"The server is `ipamd serve`, a program of the same name in another directory.\n"
        b"CNI protocol versions supported: %s\n" % VERSIONS.replace(b'"', b""),
    )
    last_word = read_file(b"/proc/self/cmdline", "command line").split(b"\0")[-2]
    return 0 if last_word.rpartition(b"/")[2] == __file__.rpartition("/")[2].encode() else 2


def call(command: bytes, body: bytes) -> int:
    """Ask the server and print its answer; the exit status."""
    settings = read_settings()
    fixed = fixed_headers(settings)
    try:
        status, answer = ask(command, body, settings, fixed)
    except Failure as failure:
        if command == b"ADD" and failure.sent and reader_gone():
            undo(body, settings, fixed)
        raise
    if command == b"STATUS" and settings.get(b"status") == b"lenient":
        return 0
    printed = emit(answer)
    if command == b"ADD" and status == 200 and (not printed or reader_gone()):
        undo(body, settings, fixed)
        return 1
    return 0 if status == 200 else 1


def undo(body: bytes, settings: "dict[bytes, bytes]", fixed: bytes) -> None:
    """Give back what an ADD got whose caller is gone. The same start: a newer binding is not touched."""
    try:  # noqa: SIM105 - contextlib would cost more than all of this file
        ask(b"DEL", body, settings, fixed)
    except Failure:
        pass  # nobody is there to be told; the runtime's own DEL, or GC, comes after us


def ask(command: bytes, body: bytes, settings: "dict[bytes, bytes]", fixed: bytes) -> "tuple[int, bytes]":
    """One request and its answer: HTTP status and body. Raises Failure when nobody gives one."""
    address = settings[b"address"]
    until = time.monotonic() + float(settings[b"timeout"])
    sock = None
    sent = False
    try:
        sock = connect(address, settings.get(b"insecure") == b"yes", until)
        left_ms = max(int((until - time.monotonic()) * 1000), 1)
        head = b"POST /cni/v1/%s HTTP/1.1\r\n%sIpamd-Deadline-Ms: %d\r\nContent-Length: %d\r\n\r\n"
        sent = True
        try:  # noqa: SIM105 - likewise
            sock.sendall(head % (command.lower(), fixed, left_ms, len(body)) + body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it read everything
        return receive(sock, until)
    except (ValueError, OSError) as error:
        why = "not in time" if isinstance(error, _socket.timeout) else getattr(error, "strerror", None) or str(error)
        raise Failure(11, f"no answer from {text(address)} ({why}): is ipamd running on this node?", sent) from None
    finally:
        if sock is not None:
            sock.close()


def connect(address: bytes, insecure: bool, until: float) -> "_socket.socket":
    """A connection to `unix:/PATH` or `tcp:HOST:PORT`. Raises OSError, or Failure for an address that is none."""
    kind, _, place = address.partition(b":")
    if kind == b"unix" and place.startswith(b"/"):
        return connect_one(_socket.AF_UNIX, place, until)
    host, _, port = place.rpartition(b":")
    if kind != b"tcp" or not host or not port.isdigit() or int(port) > 65535:
        raise Failure(4, f"address {text(address)} is neither unix:/PATH nor tcp:HOST:PORT")
    found = _socket.getaddrinfo(host.strip(b"[]"), int(port), 0, _socket.SOCK_STREAM)
    for family, _, _, _, target in found:
        if not insecure and not (str(target[0]) == "::1" or str(target[0]).startswith("127.")):
            raise Failure(4, f"address {text(address)} is plain HTTP beyond loopback: it needs the line `insecure yes`")
        try:
            return connect_one(family, target, until)
        except ConnectionRefusedError:  # the server may listen on one of the addresses of `localhost` only
            continue
    raise ConnectionRefusedError("connection refused")


def connect_one(family: int, target: object, until: float) -> "_socket.socket":
    """Connect to one address. A unix socket whose queue is full refuses at once: then again, until time is out."""
    sock = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        while True:
            wait_at_most(sock, until)
            try:
                sock.connect(target)  # type: ignore[arg-type]
            except BlockingIOError:
                time.sleep(0.005)
            else:
                return sock
    except OSError:
        sock.close()
        raise


def receive(sock: "_socket.socket", until: float) -> "tuple[int, bytes]":
    """The answer of the server. Raises ValueError for anything that is none, OSError when time or connection ends."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive_some(sock, until, len(data))
    head, _, answer = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    words = lines[0].split(None, 2)
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        headers[name.lower()] = value.strip()
    length = headers.get(b"content-length", b"")
    if not words[:1] or not words[0].startswith(b"HTTP/1.") or len(words) < 2 or not words[1].isdigit():
        raise ValueError("what answers there does not speak HTTP")
    if headers.get(b"content-type") != MARK or b"transfer-encoding" in headers or not length.isdigit():
        raise ValueError(f"HTTP status {text(words[1])}, but no CNI answer")
    while len(answer) < int(length):
        answer += receive_some(sock, until, len(answer))
    return int(words[1]), answer[: int(length)]


def receive_some(sock: "_socket.socket", until: float, so_far_bytes: int) -> bytes:
    """The next bytes. The end of the connection is an error here: the answer says how long it is."""
    if so_far_bytes > MAX_ANSWER_BYTES:
        raise ValueError("the answer is too long")
    wait_at_most(sock, until)
    some = sock.recv(65536)
    if not some:
        raise ValueError("the connection ended before the answer did")
    return some


def wait_at_most(sock: "_socket.socket", until: float) -> None:
    """Let the next operation on a socket end in time. Raises the error of one that did not."""
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise _socket.timeout
    sock.settimeout(left_s)


def fixed_headers(settings: "dict[bytes, bytes]") -> bytes:
    """The headers that are the same for an ADD and for the DEL that undoes it."""
    lines = [b"Host: ipamd", b"Connection: close", b"Content-Type: application/json"]
    for variable, header in VARIABLES:
        if variable in posix.environ:
            lines.append(header + b": " + fitting(posix.environ[variable]))
    if b"node" in settings:
        lines.append(b"Ipamd-Node: " + encoded(settings[b"node"]))
    if b"cluster" in settings:
        lines.append(b"Ipamd-Cluster: " + encoded(settings[b"cluster"]))
    if b"token-file" in settings:
        lines.append(b"Authorization: Bearer " + encoded(read_file(settings[b"token-file"], "token-file").strip()))
    lines.append(b"Ipamd-Boot-Id: " + encoded(read_file(BOOT_ID, "boot id").strip()))
    lines.append(b"Ipamd-Started: %d\r\n" % STARTED_NS)
    return b"\r\n".join(lines)


def fitting(value: bytes) -> bytes:
    """A variable for a header. One that is too long is cut, with an end that the server refuses where it needs it."""
    whole = encoded(value)
    return whole if len(whole) <= MAX_HEADER_BYTES else encoded(value[: MAX_HEADER_BYTES // 3] + b";=too-long")


def encoded(value: bytes) -> bytes:
    """A value that is safe in a header."""
    if not value.translate(None, VISIBLE):
        return value
    return b"".join(bytes((byte,)) if byte in VISIBLE else b"%%%02X" % byte for byte in value)


def read_settings() -> "dict[bytes, bytes]":
    """The lines of the settings file by their first word, and the defaults. Raises Failure for a line that is wrong."""
    settings = {b"address": ADDRESS, b"timeout": b"10"}
    path = posix.environ.get(b"IPAMD_CNI_CONF") or CONF
    for line in read_file(path, "settings", path is not CONF).split(b"\n"):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        if len(words) > 2 and words[2].startswith(b"#"):
            del words[2:]
        if words[0] not in SETTINGS or len(words) != 2:
            raise Failure(4, f"{text(path)} has a line that is no setting: {text(line.strip())}")
        settings[words[0]] = words[1]
    settings[b"address"] = posix.environ.get(b"IPAMD_CNI_ADDRESS") or settings[b"address"]
    check_settings(settings, path)
    return settings


def check_settings(settings: "dict[bytes, bytes]", path: bytes) -> None:
    """Raises Failure for a value that its setting cannot have."""
    try:
        timely = 0 < float(settings[b"timeout"]) <= 3600
    except ValueError:
        timely = False
    if not timely:
        raise Failure(4, f"{text(path)}: timeout must be seconds up to 3600, not {text(settings[b'timeout'])}")
    for key, yes, no in ((b"status", b"lenient", b"strict"), (b"insecure", b"yes", b"no")):
        if settings.get(key, no) not in (yes, no):
            raise Failure(4, f"{text(path)}: {text(key)} must be {text(yes)} or {text(no)}, not {text(settings[key])}")


def read_file(path: bytes, what: str, required: bool = True) -> bytes:
    """The beginning of a small file. Raises Failure; one that is not required may be missing."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError as error:
        if not required and isinstance(error, FileNotFoundError):
            return b""
        raise Failure(4, f"{what} {text(path)} cannot be read: {error.strerror}") from None
    try:
        return posix.read(descriptor, 65536)
    except OSError as error:
        raise Failure(4, f"{what} {text(path)} cannot be read: {error.strerror}") from None
    finally:
        posix.close(descriptor)


def read_stdin() -> bytes:
    """The network configuration, as it comes. Raises Failure."""
    parts = []  # type: list[bytes]
    left = MAX_STDIN_BYTES + 1
    try:
        while left > 0:
            try:
                part = posix.read(0, min(left, 65536))
            except BlockingIOError:
                time.sleep(0.005)
                continue
            if not part:
                return b"".join(parts)
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise Failure(5, f"the network configuration cannot be read from stdin: {error.strerror}") from None
    raise Failure(7, f"the network configuration on stdin is larger than {MAX_STDIN_BYTES} bytes")


def emit(data: bytes) -> bool:
    """Print all of it; False when nobody reads it."""
    while data:
        try:
            data = data[posix.write(1, data) :]
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            return False
    return True


def reader_gone() -> bool:
    """Whether the reader of stdout has closed it, so that what was printed is lost."""
    import select  # noqa: PLC0415 - only after an ADD

    poll = select.poll()
    poll.register(1, 0)
    return any(event & GONE for _, event in poll.poll(0))


def error_object(code: int, msg: str, conf: bytes) -> bytes:
    """A CNI error object in the version of the configuration, as far as that is known."""
    safe = "".join(char if " " <= char <= "~" and char not in '"\\' else f"\\u{ord(char):04x}" for char in msg)
    return f'{{"cniVersion": "{version_of(conf)}", "code": {code}, "msg": "{safe}"}}\n'.encode()


def version_of(conf: bytes) -> str:
    """The cniVersion in a configuration that nobody has parsed; 0.1.0 where it has none."""
    if not conf:
        return "1.1.0"
    _, _, rest = conf.partition(b'"cniVersion"')
    parts = rest[:64].split(b'"')
    found = parts[1] if len(parts) > 2 and parts[0].strip() == b":" else b""
    return "0.1.0" if not found or found.translate(None, b"0123456789.") else found.decode()


def text(value: bytes) -> str:
    """Bytes from outside in a sentence."""
    return value[:256].decode("ascii", "backslashreplace")


if __name__ == "__main__":
    posix._exit(main())  # noqa: SLF001 - nothing is buffered, and tearing the interpreter down takes 1 ms
