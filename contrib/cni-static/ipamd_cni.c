/* The CNI IPAM plugin of ipamd for hosts without Python: hands a call to the node socket and prints the answer.
 * It speaks and behaves as cli/ipamd_cni.py does, which says why; the same tests run over both. One thing is different:
 * behind `tcp:` it wants an address or `localhost`, because a static program has no name service it can rely on. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define VERSIONS "{\"cniVersion\": \"1.1.0\", \"supportedVersions\": " \
    "[\"0.1.0\", \"0.2.0\", \"0.3.0\", \"0.3.1\", \"0.4.0\", \"1.0.0\", \"1.1.0\"]}\n"
#define ABOUT "ipamd: the CNI IPAM plugin, run by a container runtime with CNI_COMMAND. The server: `ipamd serve`.\n" \
    "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n"
#define SPACE " \t\r\n\v\f"
#define DIE(code, ...) (snprintf(why, sizeof why, __VA_ARGS__), emit_error(code), exit(1))
#define NO_ANSWER(text) (reason = (text), -1)
#define FAILED NO_ANSWER(errno == EAGAIN ? "not in time" : strerror(errno))
#define IN_TIME(call) while ((n = late(sock, until_ns) ? -1 : (call)) < 0 && errno == EINTR)
enum { ADDRESS, TOKEN_FILE, TIMEOUT, NODE, CLUSTER, STATUS, INSECURE, SETTINGS, LIMIT = 1 << 20 /* bytes of stdin */ };
static const char *const NAMES[] = {"address", "token-file", "timeout", "node", "cluster", "status", "insecure"};
static const char *const CHOICES[SETTINGS][2] = {[STATUS] = {"lenient", "strict"}, [INSECURE] = {"yes", "no"}};
static const char *const VERBS[][2] = {
    {"ADD", "add"}, {"DEL", "del"}, {"CHECK", "check"}, {"GC", "gc"}, {"STATUS", "status"}, {0, 0}};
static const char *const VARIABLES[][2] = {{"CNI_CONTAINERID", "CNI-ContainerID: "}, {"CNI_NETNS", "CNI-Netns: "},
    {"CNI_IFNAME", "CNI-IfName: "}, {"CNI_ARGS", "CNI-Args: "}, {"CNI_PATH", "CNI-Path: "}, {0, 0}};
static const char *setting[] = {"unix:/run/ipamd/cni.sock", 0, "10", 0, 0, "strict", "no"}; /* in the order of NAMES */
static char body[LIMIT + 2], reply[2 * LIMIT + 1], why[1024], *answer, *reason = "";
static size_t body_bytes, answer_bytes, sent; /* sent: the server may have carried the call out */
static long long started_ns;

static long long clock_ns(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}
static int not_yet(void) { return (errno == EAGAIN || errno == EINTR) && !usleep(5000); }
static int emit(const char *data, size_t left) { /* prints all of it; false when nobody reads it */
    for (ssize_t n; left; data += n, left -= n)
        if ((n = write(1, data, left)) < 0 && (n = 0, !not_yet())) return 0;
    return 1;
}
static const char *version(void) { /* of a configuration that nobody has parsed; 0.1.0 where it has none */
    static char found[64];
    const char *key = memmem(body, body_bytes, "\"cniVersion\"", 12);
    int end = 0;
    if (key) sscanf(key + 12, " : \"%56[0-9.]\"%n", found, &end);
    return !body_bytes ? "1.1.0" : end ? found : "0.1.0";
}
static int emit_error(int code) { /* prints `why` as an error object, which is JSON whatever bytes are in it */
    char out[10240];
    int end = sprintf(out, "{\"cniVersion\": \"%s\", \"code\": %d, \"msg\": \"", version(), code);
    for (const unsigned char *at = (unsigned char *)why; *at; at++)
        end += sprintf(out + end, *at > 127 ? "\\u005cx%02x" : *at < 32 || strchr("\"\\\x7f", *at) ? "\\u%04x" : "%c",
                       *at);
    return emit(out, end + sprintf(out + end, "\"}\n"));
}
static char *read_file(const char *path, const char *what, int required) { /* the beginning of a small file */
    char *text = calloc(1, 65537);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if ((fd < 0 || read(fd, text, 65536) < 0) && (fd >= 0 || required || errno != ENOENT))
        DIE(4, "%s %.256s cannot be read: %s", what, path, strerror(errno));
    if (fd >= 0) close(fd);
    return text;
}
static void read_stdin(void) {
    for (ssize_t n; (n = read(0, body + body_bytes, LIMIT + 1 - body_bytes)); body_bytes += n > 0 ? n : 0)
        if (n < 0 && !not_yet()) DIE(5, "the network configuration cannot be read from stdin: %s", strerror(errno));
    if (body_bytes > LIMIT) DIE(7, "the network configuration on stdin is larger than %d bytes", LIMIT);
}
static int fits(int key, char *value) { /* whether a setting can have this value */
    double timeout_s = key == TIMEOUT ? strtod(value, &value) : 1;
    if (CHOICES[key][0]) return !strcmp(value, CHOICES[key][0]) || !strcmp(value, CHOICES[key][1]);
    return key != TIMEOUT || (timeout_s > 0 && timeout_s <= 3600 && !*value);
}
static void read_settings(void) {
    const char *named = getenv("IPAMD_CNI_CONF"), *path = named && *named ? named : "/etc/ipamd/cni.conf";
    char *file = read_file(path, "settings", path == named), *line;
    while ((line = strsep(&file, "\n"))) {
        char *whole = strdup(line), *word = strtok(line, SPACE), *value = strtok(0, SPACE), *more = strtok(0, SPACE);
        int key = 0;
        if (!word || *word == '#') continue;
        while (key < SETTINGS && strcmp(word, NAMES[key])) key++;
        if (key == SETTINGS || !value || (more && *more != '#') || !fits(key, value))
            DIE(4, "%.256s has a line that is no setting, or has a value that it cannot have: %.256s", path, whole);
        setting[key] = value;
    }
    if (*(getenv("IPAMD_CNI_ADDRESS") ?: "")) setting[ADDRESS] = getenv("IPAMD_CNI_ADDRESS");
}
static void put(FILE *out, const char *name, const char *value) { /* a header, which no byte of its value can end */
    int bytes = value ? fprintf(out, "%s", name) : 0;
    for (; value && *value && bytes < 16000; value++) /* the server takes 16 KiB, and refuses what ends as below */
        bytes += fprintf(out, *value > ' ' && *value < 127 && *value != '%' ? "%c" : "%%%02X", *value & 255);
    if (value) fputs(*value ? ";=too-long\r\n" : "\r\n", out);
}
static void put_head(FILE *out, const char *verb) {
    fprintf(out, "POST /cni/v1/%s HTTP/1.1\r\nHost: ipamd\r\nConnection: close\r\n", verb);
    fprintf(out, "Content-Type: application/json\r\nIpamd-Started: %lld\r\n", started_ns);
    for (int i = 0; VARIABLES[i][0]; i++) put(out, VARIABLES[i][1], getenv(VARIABLES[i][0]));
    put(out, "Ipamd-Node: ", setting[NODE]);
    put(out, "Ipamd-Cluster: ", setting[CLUSTER]);
    if (setting[TOKEN_FILE])
        put(out, "Authorization: Bearer ", strtok(read_file(setting[TOKEN_FILE], "token-file", 1), SPACE) ?: "");
    put(out, "Ipamd-Boot-Id: ", strtok(read_file("/proc/sys/kernel/random/boot_id", "boot id", 1), SPACE));
}
static int late(int sock, long long until_ns) { /* lets the next operation on a socket end in time; true: too late */
    long long left_us = (until_ns - clock_ns(CLOCK_MONOTONIC)) / 1000;
    struct timeval left = {left_us / 1000000, left_us % 1000000};
    errno = EAGAIN;
    return left_us <= 0 || setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof left) ||
           setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof left);
}
static int dial(const char *address, long long until_ns) { /* a connection, or -1 and errno */
    union { struct sockaddr any; struct sockaddr_un un; struct sockaddr_in v4; struct sockaddr_in6 v6; } to = {0};
    char host[64] = "", port[8] = "";
    int n = 0, family = AF_UNIX;
    if (!strncmp(address, "unix:/", 6)) {
        if (strlen(address + 5) >= sizeof to.un.sun_path) return errno = ENAMETOOLONG, -1;
        strcpy(to.un.sun_path, address + 5);
    } else {
        family = sscanf(address, "tcp:[%63[^]]]:%7[0-9]%n", host, port, &n) == 2 ? AF_INET6 : AF_INET;
        if (family == AF_INET) sscanf(address, "tcp:%63[^:]:%7[0-9]%n", host, port, &n);
        if (!strcmp(host, "localhost")) strcpy(host, "127.0.0.1");
        to.v4.sin_port = htons(atoi(port)); /* sin6_port is the same place */
        if (!n || address[n] || atoi(port) > 65535 ||
            inet_pton(family, host, family == AF_INET ? (void *)&to.v4.sin_addr : &to.v6.sin6_addr) != 1)
            DIE(4, "address %.256s is neither unix:/PATH nor tcp:HOST:PORT (localhost or an address)", address);
        if (strncmp(host, "127.", 4) && strcmp(host, "::1") && strcmp(setting[INSECURE], "yes"))
            DIE(4, "address %.256s is plain HTTP beyond loopback: it needs the line `insecure yes`", address);
    }
    int sock = socket(to.any.sa_family = family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    IN_TIME(connect(sock, &to.any, family == AF_UNIX ? sizeof to.un : sizeof to.v6));
    return n < 0 ? -1 : sock;
}
static int parse(size_t got) { /* the status of an answer of which so much is here; 0: more must come, -1: it is none */
    char *end = memmem(reply, got, "\r\n\r\n", 4), *line = reply, mark[32] = "", length[8] = "", after = 0;
    int status = 0, coded = 0;
    if (!end) return 0;
    if (sscanf(reply, "HTTP/1.%*s %3d", &status) != 1 || status < 1) return NO_ANSWER("it does not speak HTTP");
    while (line < end && (line = memchr(line, '\n', end + 2 - line) + 1)) {
        if (!strncasecmp(line, "content-type:", 13)) sscanf(line + 13, " %31[^\r]", mark);
        if (!strncasecmp(line, "content-length:", 15)) sscanf(line + 15, " %7[0-9]%c", length, &after);
        if (!strncasecmp(line, "transfer-encoding:", 18)) coded = 1;
    }
    if (strcmp(mark, "application/cni+json") || coded || after != '\r') return NO_ANSWER("HTTP, but no CNI answer");
    answer = end + 4, answer_bytes = atoi(length);
    return got - (answer - reply) >= answer_bytes ? status : 0;
}
static int ask(const char *verb) { /* the status of the answer; -1 if there is none, and a `reason` */
    long long until_ns = clock_ns(CLOCK_MONOTONIC) + (long long)(atof(setting[TIMEOUT]) * 1e9);
    char *request;
    size_t left, got = 0;
    FILE *out = open_memstream(&request, &left);
    put_head(out, verb);
    int sock = dial(setting[ADDRESS], until_ns), status, n;
    if (sock < 0) return FAILED;
    fprintf(out, "Ipamd-Deadline-Ms: %lld\r\n", (until_ns - clock_ns(CLOCK_MONOTONIC)) / 1000000 + 1);
    fprintf(out, "Content-Length: %zu\r\n\r\n", body_bytes);
    fwrite(body, 1, body_bytes, out);
    fclose(out);
    for (sent = 1; left; request += n, left -= n) {
        IN_TIME(send(sock, request, left, MSG_NOSIGNAL));
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break; /* it may have answered before it read all */
        if (n < 0) return FAILED;
    }
    for (; !(status = parse(got)); got += n) {
        IN_TIME(recv(sock, reply + got, 2 * LIMIT - got, 0));
        if (n < 0) return FAILED;
        if (n == 0) return NO_ANSWER(got < 2 * LIMIT ? "the connection ended early" : "the answer is too long");
    }
    return close(sock), status;
}
int main(int argc, char **argv) {
    started_ns = clock_ns(CLOCK_BOOTTIME); /* first of all: it says whether this call or a DEL came first */
    const char *command = getenv("CNI_COMMAND") ?: "";
    struct pollfd out = {.fd = 1}; /* no events: it tells of nothing but the end of the reader */
    int verb = 0;
    signal(SIGPIPE, SIG_IGN);
    if (!*command) return write(2, ABOUT, sizeof ABOUT - 1), argc > 1 && argv[1] ? 2 : 0;
    if (!strcmp(command, "VERSION")) return !emit(VERSIONS, sizeof VERSIONS - 1);
    while (VERBS[verb][0] && strcmp(command, VERBS[verb][0])) verb++;
    if (!VERBS[verb][0]) DIE(4, "CNI_COMMAND %.256s is unknown", command);
    read_stdin();
    read_settings();
    int status = ask(VERBS[verb][1]), is_add = !strcmp(command, "ADD");
    if (status > 0 && !strcmp(command, "STATUS") && !strcmp(setting[STATUS], "lenient")) return 0;
    snprintf(why, sizeof why, "no answer from %.256s (%s): is ipamd running on this node?", setting[ADDRESS], reason);
    int read = status < 0 ? emit_error(11) : emit(answer, answer_bytes);
    if (is_add && (status == 200 || (status < 0 && sent)) && (!read || poll(&out, 1, 0) > 0))
        return ask("del"), 1; /* its caller is gone; the same start, so that a newer binding is not touched */
    return status != 200;
}
