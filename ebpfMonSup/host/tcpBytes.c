/* SPDX-License-Identifier: BSD-3-Clause */
/* struct tcp_info (linux/tcp.h): bytes_acked and bytes_received are there since Linux 4.1. */
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/sockDiag.h"
#include "host/tcpBytes.h"
#include "host/tcpDiag.h"

#define PATIENCE 1.0 /* s */
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
        size_t size = RTA_PAYLOAD(a);

        if (a->rta_type != INET_DIAG_INFO || size < offsetof(struct tcp_info, tcpi_segs_out))
            continue;
        memcpy(&info, RTA_DATA(a), size < sizeof(info) ? size : sizeof(info));
        r->each(r->arg, &(ebpfMonTcpBytes){ .local = msg->id.idiag_src[0], .remote = msg->id.idiag_dst[0],
                                            .localPort = msg->id.idiag_sport, .remotePort = msg->id.idiag_dport,
                                            .sent = info.tcpi_bytes_acked, .received = info.tcpi_bytes_received });
    }
    return 0;
}

int ebpfMonTcpBytesRead(pid_t pid, void (*each)(void *arg, const ebpfMonTcpBytes *bytes), void *arg)
{
    static const ebpfMonSockDiagRequest request = {
        .family = AF_INET, .states = EBPFMON_TCP_STATE(ebpfMonTcpEstablished), .extensions = 1u << (INET_DIAG_INFO - 1)
    };
    bytesReader r = { .each = each, .arg = arg };
    int file = ebpfMonSockDiagOpen(pid, PATIENCE), status;

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
    struct inet_diag_sockid id = { .idiag_sport = peer->sport, .idiag_dport = peer->port,
                                   .idiag_src = { peer->saddr }, .idiag_dst = { peer->addr } };
    int isIPv6 = ebpfMonIsIPv6(peer->addr6);
    foundSocket found = { .received = UINT64_MAX };
    int file = ebpfMonSockDiagOpen(pid, FIND_PATIENCE), status;

    if (file < 0)
        return -1;
    if (isIPv6) {
        memcpy(id.idiag_src, peer->saddr6, sizeof(id.idiag_src));
        memcpy(id.idiag_dst, peer->addr6, sizeof(id.idiag_dst));
    }
    status = ebpfMonSockDiagAsk(file, isIPv6 ? AF_INET6 : AF_INET, &id, 1u << (INET_DIAG_INFO - 1), noteFound, &found);
    close(file);
    *received = found.received;
    return status > 0 && (found.state == ebpfMonTcpListen || isHalfOpen(found.state)) ? 0 : status;
}
