/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/array.h"
#include "host/netnsSocket.h"
#include "host/tcpDiag.h"

#define PATIENCE_US  200000 /* for each part of an answer; the kernel answers within microseconds */
#define ANSWER_BYTES 32768  /* more than the kernel puts into one message (netlink_dump) */
#define ROWS_MAX     (1u << 18)

typedef struct {
    int    file;
    ebpfMonTcpRow *rows;
    size_t count, room;
    char   answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
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

static int addRow(diagReader *r, const struct inet_diag_msg *m)
{
    ebpfMonTcpRow row = { .state = m->idiag_state, .localPort = m->id.idiag_sport, .remotePort = m->id.idiag_dport,
                          .uid = m->idiag_uid, .inode = m->idiag_inode };

    row.v4 = getAddress(m, m->id.idiag_src, &row.local) && getAddress(m, m->id.idiag_dst, &row.remote);
    if (r->count >= ROWS_MAX || ebpfMonArrayGrow(&r->rows, &r->room, r->count + 1, 64, sizeof(*r->rows)))
        return -1;
    r->rows[r->count++] = row;
    return 0;
}

/* One part of the answer. 1: more is to come, 0: that was all, -1: an error. */
static int addPart(diagReader *r, size_t bytes)
{
    const struct nlmsghdr *head = (const struct nlmsghdr *)r->answer;

    for (; NLMSG_OK(head, bytes); head = NLMSG_NEXT(head, bytes)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)) ||
            addRow(r, NLMSG_DATA(head)))
            return -1;
    }
    return 1;
}

static int readFamily(diagReader *r, uint8_t family, unsigned states)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .body = { .sdiag_family = family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = states },
    };
    int more = 1;

    if (send(r->file, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
        return -1;
    while (more > 0) {
        ssize_t n = recv(r->file, r->answer, sizeof(r->answer), 0);

        more = n > 0 ? addPart(r, (size_t)n) : -1;
    }
    return more;
}

int ebpfMonTcpDiagRead(pid_t pid, unsigned states, ebpfMonTcpRow **rows)
{
    struct timeval patience = { .tv_usec = PATIENCE_US };
    diagReader *r = calloc(1, sizeof(*r));
    int count = -1;

    *rows = NULL;
    if (!r)
        return -1;
    r->file = ebpfMonNetnsSocketOpen(pid, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG, NULL);
    if (r->file >= 0 && !setsockopt(r->file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
        !readFamily(r, AF_INET, states) && !readFamily(r, AF_INET6, states)) {
        count = (int)r->count;
        *rows = r->rows;
        r->rows = NULL;
    }
    if (r->file >= 0)
        close(r->file);
    free(r->rows);
    free(r);
    return count;
}
