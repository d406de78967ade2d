/* SPDX-License-Identifier: BSD-3-Clause */
/* struct tcp_info (linux/tcp.h): bytes_acked and bytes_received are there since Linux 4.1. */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "host/netnsSocket.h"
#include "host/procTcp.h"
#include "host/tcpBytes.h"

#define ANSWER_SIZE  32768 /* as much as the kernel puts into one (netlink_dump) */
#define ANSWERS_MAX  10000

static int sendRequest(int fd)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .body = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1u << ebpfMonTcpEstablished,
                  .idiag_ext = 1u << (INET_DIAG_INFO - 1) },
    };
    struct timeval patience = { .tv_sec = 1 };

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
           send(fd, &question, sizeof(question), 0) != (ssize_t)sizeof(question) ? -1 : 0;
}

static void readConnection(const struct nlmsghdr *head, void (*each)(void *arg, const ebpfMonTcpBytes *bytes),
                           void *arg)
{
    const struct inet_diag_msg *msg = NLMSG_DATA(head);
    long left = (long)head->nlmsg_len - (long)NLMSG_LENGTH(sizeof(*msg));

    if (left < 0)
        return;
    for (const struct rtattr *a = (const struct rtattr *)(msg + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        struct tcp_info info = { .tcpi_state = 0 };
        size_t size = RTA_PAYLOAD(a);

        if (a->rta_type != INET_DIAG_INFO || size < offsetof(struct tcp_info, tcpi_segs_out))
            continue;
        memcpy(&info, RTA_DATA(a), size < sizeof(info) ? size : sizeof(info));
        each(arg, &(ebpfMonTcpBytes){ .local = msg->id.idiag_src[0], .remote = msg->id.idiag_dst[0],
                                      .localPort = msg->id.idiag_sport, .remotePort = msg->id.idiag_dport,
                                      .sent = info.tcpi_bytes_acked, .received = info.tcpi_bytes_received });
    }
}

/* 1: that was all; 0: more is to come; -1: an error. */
static int handAll(const struct nlmsghdr *head, long left, void (*each)(void *arg, const ebpfMonTcpBytes *bytes),
                   void *arg)
{
    for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        if (head->nlmsg_type == NLMSG_DONE)
            return 1;
        if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return -1;
        readConnection(head, each, arg);
    }
    return 0;
}

int ebpfMonTcpBytesRead(pid_t pid, void (*each)(void *arg, const ebpfMonTcpBytes *bytes), void *arg)
{
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_SIZE];
    } answer;
    int fd = ebpfMonNetnsSocketOpen(pid, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG, NULL);
    int status = fd < 0 || sendRequest(fd) ? -1 : 0;

    for (int i = 0; status == 0 && i < ANSWERS_MAX; i++) {
        ssize_t n = recv(fd, &answer, sizeof(answer), 0);

        status = n <= 0 ? -1 : handAll(&answer.head, n, each, arg);
    }
    if (fd >= 0)
        close(fd);
    return status == 1 ? 0 : -1;
}
