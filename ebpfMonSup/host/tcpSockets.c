/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/array.h"
#include "host/netnsSocket.h"
#include "host/procRead.h"
#include "host/tcpSockets.h"

/* --- addresses as text --- */

void ebpfMonPeerTextAddress(uint32_t addr, const uint32_t addr6[4], char *buf, size_t size)
{
    char text[EBPFMON_PEERTEXT_SIZE] = "not known";

    if (ebpfMonIsIPv6(addr6))
        inet_ntop(AF_INET6, addr6, text, sizeof(text));
    else if (*(const uint8_t *)&addr) /* nobody is in 0/8 */
        inet_ntop(AF_INET, &addr, text, sizeof(text));
    snprintf(buf, size, "%s", text);
}

void ebpfMonPeerTextEnd(uint32_t addr, const uint32_t addr6[4], uint16_t port, char *buf, size_t size)
{
    char text[EBPFMON_PEERTEXT_SIZE];

    ebpfMonPeerTextAddress(addr, addr6, text, sizeof(text));
    snprintf(buf, size, ebpfMonIsIPv6(addr6) ? "[%s]:%u" : "%s:%u", text, ntohs(port));
}

/* --- sock_diag --- */

#define ANSWER_BYTES 32768 /* as much as the kernel puts into one message (netlink_dump) */
#define ANSWERS_MAX  10000

int ebpfMonSockDiagOpen(pid_t pid, double seconds)
{
    struct timeval patience = {.tv_sec = (time_t)seconds,
                               .tv_usec = (suseconds_t)(1e6 * (seconds - (double)(time_t)seconds))};
    int file = ebpfMonNetnsNetlinkOpen(pid, NETLINK_SOCK_DIAG);

    if (file >= 0 && setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
        close(file);
        return -1;
    }
    return file;
}

/* The older request is for both families at once (inet_diag_dump_compat). Two of the other would walk through all
 * sockets of the host twice. */
static int sendRequest(int file, const ebpfMonSockDiagRequest *request)
{
    int isForBoth = request->family == AF_UNSPEC;
    struct {
        struct nlmsghdr head;
        union {
            struct inet_diag_req    both;
            struct inet_diag_req_v2 one;
        } body;
    } question = { .head = { .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };

    if (isForBoth)
        question.body.both = (struct inet_diag_req){ .idiag_family = AF_INET, .idiag_states = request->states,
                                                     .idiag_ext = request->extensions };
    else
        question.body.one = (struct inet_diag_req_v2){ .sdiag_family = request->family, .sdiag_protocol = IPPROTO_TCP,
                                                       .idiag_states = request->states,
                                                       .idiag_ext = request->extensions };
    question.head.nlmsg_type = isForBoth ? TCPDIAG_GETSOCK : SOCK_DIAG_BY_FAMILY;
    question.head.nlmsg_len = NLMSG_LENGTH(isForBoth ? sizeof(question.body.both) : sizeof(question.body.one));
    return send(file, &question, question.head.nlmsg_len, 0) == (ssize_t)question.head.nlmsg_len ? 0 : -1;
}

static int isSocket(const struct nlmsghdr *head)
{
    return (head->nlmsg_type == SOCK_DIAG_BY_FAMILY || head->nlmsg_type == TCPDIAG_GETSOCK)
           && head->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg));
}

/* One part of the answer. 1: more is to come, 0: that was all, -1: an error. */
static int readPart(const struct nlmsghdr *head, size_t left, ebpfMonSockDiagEach each, void *arg)
{
    for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (!isSocket(head) || each(arg, NLMSG_DATA(head), head->nlmsg_len - NLMSG_LENGTH(0)))
            return -1;
    }
    return 1;
}

int ebpfMonSockDiagRead(int file, const ebpfMonSockDiagRequest *request, ebpfMonSockDiagEach each, void *arg)
{
    struct nlmsghdr *answer = malloc(ANSWER_BYTES);
    int more = answer && sendRequest(file, request) == 0 ? 1 : -1;

    for (int i = 0; more > 0 && i < ANSWERS_MAX; i++) {
        ssize_t n = recv(file, answer, ANSWER_BYTES, 0);

        more = n > 0 ? readPart(answer, (size_t)n, each, arg) : -1;
    }
    free(answer);
    return more ? -1 : 0;
}

/* An answer with its extensions. */
typedef union {
    struct nlmsghdr head;
    char room[1024];
} diagAnswer;

/* Nonzero: an answer came. */
static int askSocket(int file, uint8_t family, const struct inet_diag_sockid *id, uint8_t extensions,
                     diagAnswer *answer)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_ext = extensions, .idiag_states = ~0u,
                  .id = *id },
    };
    ssize_t n;

    question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    while (recv(file, answer, sizeof(*answer), MSG_DONTWAIT) >= 0) /* an answer to an earlier question */
        ;
    if (send(file, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
        return 0;
    n = recv(file, answer, sizeof(*answer), 0);
    return n >= 0 && NLMSG_OK(&answer->head, (size_t)n);
}

/* The socket with these addresses of this family, or one that listens there. The kernel looks into its hash table only.
 * 0, or -1: there is none, or no answer came. */
static int findSockDiag(int file, uint8_t family, const struct inet_diag_sockid *id, struct inet_diag_msg *socket)
{
    diagAnswer answer;

    if (!askSocket(file, family, id, 0, &answer) || !isSocket(&answer.head))
        return -1;
    memcpy(socket, NLMSG_DATA(&answer.head), sizeof(*socket));
    return 0;
}

/* The same, with extensions (INET_DIAG_…, a bit each): calls "each" for the socket. 1; 0: the kernel says that there
 * is none; -1: it did not answer. */
static int askSockDiag(int file, uint8_t family, const struct inet_diag_sockid *id, uint8_t extensions,
                       ebpfMonSockDiagEach each, void *arg)
{
    const struct nlmsgerr *error;
    diagAnswer answer;

    if (!askSocket(file, family, id, extensions, &answer))
        return -1;
    if (isSocket(&answer.head)) {
        each(arg, NLMSG_DATA(&answer.head), answer.head.nlmsg_len - NLMSG_LENGTH(0));
        return 1;
    }
    error = NLMSG_DATA(&answer.head);
    return answer.head.nlmsg_type == NLMSG_ERROR && answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) &&
           error->error == -ENOENT ? 0 : -1;
}

/* --- sockets as the kernel lists them --- */

#define PATIENCE 0.2 /* s */
#define ROWS_MAX (1u << 18)

typedef struct {
    int    file;
    ebpfMonTcpRow *rows;
    size_t count, room;
} diagReader;

/* An address that IPv4 has to do with: its own, one that is mapped into IPv6, or :: (0). 0: none. */
static int getAddress(const struct inet_diag_msg *m, const uint32_t from[4], uint32_t *address)
{
    int isAny = !from[0] && !from[1] && !from[2] && !from[3];

    if (m->idiag_family == AF_INET) {
        *address = from[0];
        return 1;
    }
    *address = from[3];
    return isAny || (!from[0] && !from[1] && from[2] == htonl(0xffff));
}

/* Nonzero: an address that IPv6 has to do with: its own, or :: (0). */
static int getAddress6(const struct inet_diag_msg *m, const uint32_t from[4], uint32_t address[4])
{
    if (m->idiag_family != AF_INET6 || ebpfMonIsMapped(from))
        return 0;
    memcpy(address, from, 4 * sizeof(*from));
    return 1;
}

static int addRow(void *arg, const struct inet_diag_msg *m, size_t bytes)
{
    diagReader *r = arg;
    ebpfMonTcpRow row = { .state = m->idiag_state, .localPort = m->id.idiag_sport, .remotePort = m->id.idiag_dport,
                          .uid = m->idiag_uid, .inode = m->idiag_inode };

    row.v4 = getAddress(m, m->id.idiag_src, &row.local) && getAddress(m, m->id.idiag_dst, &row.remote);
    row.v6 = getAddress6(m, m->id.idiag_src, row.local6) && getAddress6(m, m->id.idiag_dst, row.remote6);
    if (r->count >= ROWS_MAX || ebpfMonArrayGrow(&r->rows, &r->room, r->count + 1, 64, sizeof(*r->rows)))
        return -1;
    r->rows[r->count++] = row;
    return 0;
}

int ebpfMonTcpDiagRead(pid_t pid, unsigned states, ebpfMonTcpRow **rows)
{
    const ebpfMonSockDiagRequest request = { .family = AF_UNSPEC, .states = states };
    diagReader r = { .file = ebpfMonSockDiagOpen(pid, PATIENCE) };
    int count = -1;

    *rows = NULL;
    if (r.file < 0)
        return -1;
    if (!ebpfMonSockDiagRead(r.file, &request, addRow, &r)) {
        count = (int)r.count;
        *rows = r.rows;
        r.rows = NULL;
    }
    close(r.file);
    free(r.rows);
    return count;
}

/* By /proc/PID/net/if_inet6 (if6_seq_show, net/ipv6/addrconf.c). */
unsigned ebpfMonTcpFindDevice(pid_t pid, const uint32_t addr6[4])
{
    char path[40], line[128], want[33];
    unsigned device = 0;
    FILE *f;

    for (int i = 0; i < 16; i++)
        snprintf(want + 2 * i, 3, "%02x", ((const uint8_t *)addr6)[i]);
    snprintf(path, sizeof(path), "/proc/%d/net/if_inet6", (int)(pid ? pid : getpid()));
    f = fopen(path, "re");
    while (f && !device && fgets(line, sizeof(line), f))
        if (strncmp(line, want, 32) == 0)
            device = (unsigned)strtoul(line + 32, NULL, 16);
    if (f)
        fclose(f);
    return device;
}

/* The server's socket of a connection; returns its family. One with a link-local address belongs to a device
 * (inet_request_bound_dev_if(), net/inet_sock.h): without it the kernel finds the socket that listens. */
static uint8_t makeSocketId(pid_t pid, const struct ebpfMonPeer *peer, struct inet_diag_sockid *id)
{
    *id = (struct inet_diag_sockid){ .idiag_sport = peer->sport, .idiag_dport = peer->port,
                                     .idiag_src = { peer->saddr }, .idiag_dst = { peer->addr } };
    if (!ebpfMonIsIPv6(peer->addr6))
        return AF_INET;
    memcpy(id->idiag_src, peer->saddr6, sizeof(id->idiag_src));
    memcpy(id->idiag_dst, peer->addr6, sizeof(id->idiag_dst));
    if ((peer->saddr6[0] & htonl(0xffc00000)) == htonl(0xfe800000))
        id->idiag_if = ebpfMonTcpFindDevice(pid, peer->saddr6);
    return AF_INET6;
}

/* As struct ebpfMonPeer has an address: the IPv4 one, or a number that is made of the IPv6 one. */
static uint32_t shortenAddress(const struct inet_diag_msg *m, const uint32_t from[4], uint32_t address6[4])
{
    memset(address6, 0, 4 * sizeof(*address6));
    if (m->idiag_family == AF_INET)
        return from[0];
    if (!getAddress6(m, from, address6))
        return from[3];
    return ebpfMonShortAddress(address6);
}

int ebpfMonSockDiagFind(int file, pid_t pid, const struct ebpfMonPeer *peer, struct inet_diag_msg *socket)
{
    struct inet_diag_sockid id;
    uint32_t here, there, here6[4], there6[4];

    if (findSockDiag(file, makeSocketId(pid, peer, &id), &id, socket))
        return 0;
    here = shortenAddress(socket, socket->id.idiag_src, here6); /* that of one that listens there has no other end */
    there = shortenAddress(socket, socket->id.idiag_dst, there6);
    return socket->id.idiag_sport == peer->sport && socket->id.idiag_dport == peer->port &&
           ebpfMonIsSameAddress(here, here6, peer->saddr, peer->saddr6) &&
           ebpfMonIsSameAddress(there, there6, peer->addr, peer->addr6);
}

long ebpfMonTcpDiagReadQueue(pid_t pid, const struct ebpfMonPeer *peer)
{
    struct inet_diag_msg found;
    int file = ebpfMonSockDiagOpen(pid, PATIENCE), isFound;

    if (file < 0)
        return -1;
    isFound = ebpfMonSockDiagFind(file, pid, peer, &found);
    close(file);
    return isFound ? (long)found.idiag_rqueue : -1;
}

/* --- bytes --- */

/* struct tcp_info (linux/tcp.h): bytes_acked and bytes_received are there since Linux 4.1. */

#define BYTES_PATIENCE 1.0 /* s */
#define FIND_PATIENCE 0.2
#define TCP_SYN_RECV 3 /* these two: include/net/tcp_states.h */
#define NEW_SYN_RECV 12

typedef struct {
    void (*each)(void *arg, const ebpfMonTcpBytes *bytes);
    void *arg;
} bytesReader;

static int readConnection(void *arg, const struct inet_diag_msg *msg, size_t bytes)
{
    const bytesReader *r = arg;
    long left = (long)bytes - (long)NLMSG_ALIGN(sizeof(*msg));

    for (const struct rtattr *a = (const struct rtattr *)(msg + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        struct tcp_info info = { .tcpi_state = 0 };
        ebpfMonTcpBytes found;
        size_t size = RTA_PAYLOAD(a);

        if (a->rta_type != INET_DIAG_INFO || size < offsetof(struct tcp_info, tcpi_segs_out))
            continue;
        memcpy(&info, RTA_DATA(a), size < sizeof(info) ? size : sizeof(info));
        found = (ebpfMonTcpBytes){
            .localPort = msg->id.idiag_sport, .remotePort = msg->id.idiag_dport, .sent = info.tcpi_bytes_acked,
            .received = info.tcpi_bytes_received, .unread = msg->idiag_rqueue, .waiting = msg->idiag_wqueue,
            .notSent = info.tcpi_notsent_bytes, .inFlight = info.tcpi_unacked, .sentAgo = info.tcpi_last_data_sent,
            .ackAgo = info.tcpi_last_ack_recv, .retransmits = info.tcpi_retransmits + info.tcpi_probes,
        };
        found.local = shortenAddress(msg, msg->id.idiag_src, found.local6);
        found.remote = shortenAddress(msg, msg->id.idiag_dst, found.remote6);
        r->each(r->arg, &found);
    }
    return 0;
}

int ebpfMonTcpBytesRead(pid_t pid, void (*each)(void *arg, const ebpfMonTcpBytes *bytes), void *arg)
{
    static const ebpfMonSockDiagRequest request = {
        .family = AF_UNSPEC, .states = EBPFMON_TCP_STATE(ebpfMonTcpEstablished),
        .extensions = 1u << (INET_DIAG_INFO - 1)
    };
    bytesReader r = { .each = each, .arg = arg };
    int file = ebpfMonSockDiagOpen(pid, BYTES_PATIENCE), status;

    if (file < 0)
        return -1;
    status = ebpfMonSockDiagRead(file, &request, readConnection, &r);
    close(file);
    return status;
}

typedef struct {
    unsigned state;
    uint64_t received;
} foundSocket;

static void noteReceived(void *arg, const ebpfMonTcpBytes *bytes)
{
    foundSocket *found = arg;

    found->received = bytes->received;
}

static int noteFound(void *arg, const struct inet_diag_msg *msg, size_t bytes)
{
    bytesReader r = { .each = noteReceived, .arg = arg };
    foundSocket *found = arg;

    found->state = msg->idiag_state;
    return readConnection(&r, msg, bytes);
}

/* A SYN came, and nothing that shows who sent it. */
static int isHalfOpen(unsigned state)
{
    return state == TCP_SYN_RECV || state == NEW_SYN_RECV;
}

int ebpfMonTcpBytesFindReceived(pid_t pid, const struct ebpfMonPeer *peer, uint64_t *received)
{
    struct inet_diag_sockid id;
    foundSocket found = { .received = UINT64_MAX };
    int file = ebpfMonSockDiagOpen(pid, FIND_PATIENCE), status;

    if (file < 0)
        return -1;
    status = askSockDiag(file, makeSocketId(pid, peer, &id), &id, 1u << (INET_DIAG_INFO - 1), noteFound, &found);
    close(file);
    *received = found.received;
    return status > 0 && (found.state == ebpfMonTcpListen || isHalfOpen(found.state)) ? 0 : status;
}

/* --- sockets of a process --- */

#define MAX_FDS 65536u /* of one process */

/* An address in hex as the tables print it, each word in host byte order: so it reads as it is in memory.
 * 0 when it is an IPv6 one that no IPv4 peer can have to do with. */
static int parseAddress(const char *text, uint32_t *address)
{
    char mapped[25];
    uint32_t mark = htonl(0xffff);

    if (strlen(text) == 32 && strspn(text, "0") != 32) {
        snprintf(mapped, sizeof(mapped), "%016d%08X", 0, (unsigned)mark);
        if (strncmp(text, mapped, 24))
            return 0;
        text += 24;
    }
    *address = (uint32_t)strtoul(text, NULL, 16);
    return 1;
}

/* The same of IPv6. 0: it is IPv4, or mapped. */
static int parseAddress6(const char *text, uint32_t address[4])
{
    char word[9] = "";

    if (strlen(text) != 32)
        return 0;
    for (int i = 0; i < 4; i++) {
        memcpy(word, text + 8 * i, 8);
        address[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    return !ebpfMonIsMapped(address);
}

static int readTable(const char *path, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    FILE *table = fopen(path, "re");
    char line[512];
    int result = 0;

    while (table && !result && fgets(line, sizeof(line), table)) {
        char local[33], remote[33];
        unsigned localPort, remotePort, uid;
        ebpfMonTcpRow row = { .v4 = 0 };

        if (sscanf(line, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %u %*u %lu", local,
                &localPort, remote, &remotePort, &row.state, &uid, &row.inode) != 7
            || localPort > 65535 || remotePort > 65535 || row.state > 31 || !(states & EBPFMON_TCP_STATE(row.state)))
            continue;
        row.v4 = parseAddress(local, &row.local) && parseAddress(remote, &row.remote);
        row.v6 = parseAddress6(local, row.local6) && parseAddress6(remote, row.remote6);
        row.localPort = htons((uint16_t)localPort);
        row.remotePort = htons((uint16_t)remotePort);
        row.uid = (uid_t)uid;
        result = each(arg, &row);
    }
    if (table)
        fclose(table);
    return result;
}

int ebpfMonTcpRows(pid_t pid, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    char path[64] = "/proc/net/tcp";
    ebpfMonTcpRow *rows;
    int result = 0, count = ebpfMonTcpDiagRead(pid, states, &rows);

    for (int i = 0; i < count && !result; i++)
        result = each(arg, &rows[i]);
    free(rows);
    if (count >= 0)
        return result;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
    result = readTable(path, states, each, arg);
    strcat(path, "6");
    return result ? result : readTable(path, states, each, arg);
}

int ebpfMonUdpRows(pid_t pid, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg)
{
    char path[64] = "/proc/net/udp";
    int result;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/udp", (int)pid);
    result = readTable(path, ~0u, each, arg);
    strcat(path, "6");
    return result ? result : readTable(path, ~0u, each, arg);
}

/* The inode of the socket that a link of /proc/PID/fd names; 0: it names another file, or is gone. */
static unsigned long readSocketLink(pid_t pid, unsigned file)
{
    static const char begin[] = "socket:[";
    char name[16], target[64];

    snprintf(name, sizeof(name), "fd/%u", file);
    ebpfMonProcReadLink(pid, name, target, sizeof(target));
    return strncmp(target, begin, sizeof(begin) - 1) == 0 ? strtoul(target + sizeof(begin) - 1, NULL, 10) : 0;
}

int ebpfMonTcpOwned(pid_t pid, void (*each)(void *arg, unsigned file, unsigned long inode), void *arg)
{
    int *files, n = ebpfMonProcListNumbers(pid, "fd", MAX_FDS, &files);

    for (int i = 0; i < n; i++) {
        unsigned long inode = readSocketLink(pid, (unsigned)files[i]);

        if (inode)
            each(arg, (unsigned)files[i], inode);
    }
    free(files);
    return n < 0 ? -1 : 0;
}

int ebpfMonTcpHasSocket(pid_t pid, unsigned file, unsigned long inode)
{
    return readSocketLink(pid, file) == inode;
}
