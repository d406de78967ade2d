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
