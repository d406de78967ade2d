/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/array.h"
#include "host/sockDiag.h"
#include "host/tcpDiag.h"

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

    (void)bytes;
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

long ebpfMonTcpDiagReadQueue(pid_t pid, const struct ebpfMonPeer *peer)
{
    struct inet_diag_sockid id = { .idiag_sport = peer->sport, .idiag_dport = peer->port,
                                   .idiag_src = { peer->saddr }, .idiag_dst = { peer->addr } };
    int isIPv6 = ebpfMonIsIPv6(peer->addr6);
    struct inet_diag_msg found;
    int file = ebpfMonSockDiagOpen(pid, PATIENCE), status;

    if (file < 0)
        return -1;
    if (isIPv6) {
        memcpy(id.idiag_src, peer->saddr6, sizeof(id.idiag_src));
        memcpy(id.idiag_dst, peer->addr6, sizeof(id.idiag_dst));
    }
    status = ebpfMonSockDiagFind(file, isIPv6 ? AF_INET6 : AF_INET, &id, &found);
    close(file);
    return status || found.idiag_state == ebpfMonTcpListen ? -1 : (long)found.idiag_rqueue;
}
