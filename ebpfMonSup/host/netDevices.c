/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "host/netDevices.h"
#include "host/netnsSocket.h"

#define ANSWER_BYTES 32768 /* the kernel fills no part of a dump beyond that (rtnl_dump_all) */
#define PARTS_MAX    4096  /* of one answer: a bound, no host has so many */
#define NEWS_MAX     4096

struct ebpfMonNetDevices {
    int  asks, news; /* a socket for questions, and one that the kernel tells of changes; only that it does is used */
    int  hasChanged;
    char answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

ebpfMonNetDevices *ebpfMonNetDevicesOpen(pid_t pid)
{
    struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
    struct timeval patience = { .tv_sec = 1 };
    ebpfMonNetDevices *d = calloc(1, sizeof(*d));
    int err;

    if (!d)
        return NULL;
    d->hasChanged = 1;
    d->news = -1;
    d->asks = ebpfMonNetnsNetlinkOpen(pid, NETLINK_ROUTE);
    if (d->asks >= 0)
        d->news = ebpfMonNetnsSocketOpen(pid, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE, NULL);
    if (d->news >= 0 && !bind(d->news, (struct sockaddr *)&group, sizeof(group)) &&
        !setsockopt(d->asks, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
        return d;
    err = errno;
    ebpfMonNetDevicesClose(d);
    errno = err;
    return NULL;
}

void ebpfMonNetDevicesClose(ebpfMonNetDevices *d)
{
    if (!d)
        return;
    if (d->asks >= 0)
        close(d->asks);
    if (d->news >= 0)
        close(d->news);
    free(d);
}

int ebpfMonNetDevicesHaveChanged(ebpfMonNetDevices *d)
{
    char news[1]; /* that there is some is enough; ENOBUFS: there was too much of it */

    for (unsigned n = 0; n < NEWS_MAX && (recv(d->news, news, sizeof(news), 0) >= 0 || errno == ENOBUFS); n++)
        d->hasChanged = 1;
    return d->hasChanged;
}

/* Adds the devices of one part. Nonzero: more parts follow; -1 with errno. */
static int addPart(const ebpfMonNetDevices *d, size_t size, int *index, unsigned max, unsigned *count)
{
    unsigned left = (unsigned)size;

    for (const struct nlmsghdr *head = (const void *)d->answer; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
        const struct ifinfomsg *device = NLMSG_DATA(head);

        if (head->nlmsg_type == NLMSG_DONE)
            return 0;
        if (head->nlmsg_type != RTM_NEWLINK || head->nlmsg_len < NLMSG_LENGTH(sizeof(*device))) {
            errno = EPROTO;
            return -1;
        }
        if (device->ifi_flags & IFF_LOOPBACK)
            continue;
        if (*count < max)
            index[*count] = device->ifi_index;
        (*count)++;
    }
    return 1;
}

int ebpfMonNetDevicesList(ebpfMonNetDevices *d, int *index, unsigned max)
{
    const struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
    };
    unsigned count = 0;
    int more = 1;

    if (send(d->asks, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
        return -1;
    for (unsigned part = 0; more > 0 && part < PARTS_MAX; part++) {
        ssize_t n = recv(d->asks, d->answer, sizeof(d->answer), 0);

        more = n > 0 ? addPart(d, (size_t)n, index, max, &count) : -1;
    }
    if (more)
        return -1;
    d->hasChanged = 0;
    return (int)count;
}
