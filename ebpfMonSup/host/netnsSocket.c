/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/netnsSocket.h"
#include <arpa/inet.h>
#include <cantProceed.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

/* --- in a namespace --- */

#define OWN "/proc/thread-self/ns/net"

/* In the namespace "ns", which is not our own. */
static int callIn(int ns, int (*call)(void *arg), void *arg)
{
    int result = -1, err, own = open(OWN, O_RDONLY | O_CLOEXEC);

    if (own < 0)
        return -1;
    if (setns(ns, CLONE_NEWNET) == 0) {
        result = call(arg);
        err = errno;
        if (setns(own, CLONE_NEWNET))
            cantProceed("ebpfMon: this thread cannot return to its own network namespace: %s\n", strerror(errno));
        errno = err;
    }
    err = errno;
    close(own);
    errno = err;
    return result;
}

int ebpfMonNetnsCall(pid_t pid, int (*call)(void *arg), void *arg, uint32_t *netns)
{
    char path[48] = OWN;
    struct stat st, own;
    int ns, err, result = -1;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return -1;
    if (fstat(ns, &st) == 0) {
        if (netns)
            *netns = (uint32_t)st.st_ino;
        if (pid && (stat(OWN, &own) || own.st_ino != st.st_ino))
            result = callIn(ns, call, arg);
        else
            result = call(arg);
    }
    err = errno;
    close(ns);
    errno = err;
    return result;
}

typedef struct {
    int domain, type, protocol;
} wantedSocket;

static int openSocket(void *arg)
{
    const wantedSocket *s = arg;

    return socket(s->domain, s->type, s->protocol);
}

int ebpfMonNetnsSocketOpen(pid_t pid, int domain, int type, int protocol, uint32_t *netns)
{
    wantedSocket s = { domain, type, protocol };

    return ebpfMonNetnsCall(pid, openSocket, &s, netns);
}

int ebpfMonNetnsNetlinkOpen(pid_t pid, int protocol)
{
    /* a connected socket takes messages of its peer only (netlink_getsockbyportid, net/netlink/af_netlink.c) */
    const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    int file = ebpfMonNetnsSocketOpen(pid, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol, NULL), err;

    if (file < 0 || connect(file, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0)
        return file;
    err = errno;
    close(file);
    errno = err;
    return -1;
}

/* --- network devices --- */

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

/* --- addresses of this host --- */

/* IPv4: the kernel's routing table names them (/proc/PID/net/fib_trie: the address, and in the next line "/32 host
 * LOCAL"; fib_trie_seq_show, net/ipv4/fib_trie.c). IPv6: a line each of /proc/PID/net/if_inet6 begins with 32 digits
 * (if6_seq_show, net/ipv6/addrconf.c). */


static FILE *openTable(pid_t pid, const char *name)
{
    char path[48];

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
    else
        snprintf(path, sizeof(path), "/proc/thread-self/net/%s", name);
    return fopen(path, "re");
}

int ebpfMonOwnAddressesHave(const ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4])
{
    for (unsigned i = 0; i < own->count; i++)
        if (ebpfMonIsSameAddress(own->addr[i], own->addr6[i], addr, addr6))
            return 1;
    return 0;
}

static void addAddress(ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4])
{
    if (own->count == EBPFMON_OWN_ADDRESSES_MAX || ebpfMonOwnAddressesHave(own, addr, addr6))
        return;
    own->addr[own->count] = addr;
    memcpy(own->addr6[own->count++], addr6, sizeof(own->addr6[0]));
}

static void readIPv4(pid_t pid, ebpfMonOwnAddresses *own)
{
    static const uint32_t none[4];
    char line[128], text[INET_ADDRSTRLEN] = "";
    FILE *f = openTable(pid, "fib_trie");
    struct in_addr in;

    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "|-- ");

        if (at)
            sscanf(at, "|-- %15[0-9.]", text);
        else if (strstr(line, "/32 host LOCAL") && inet_pton(AF_INET, text, &in) == 1)
            addAddress(own, in.s_addr, none);
    }
    if (f)
        fclose(f);
}

static void readIPv6(pid_t pid, ebpfMonOwnAddresses *own)
{
    FILE *f = openTable(pid, "if_inet6");
    unsigned word[4];
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%8x%8x%8x%8x", &word[0], &word[1], &word[2], &word[3]) == 4) {
            for (unsigned i = 0; i < 4; i++)
                word[i] = htonl(word[i]);
            addAddress(own, ebpfMonShortAddress(word), word);
        }
    if (f)
        fclose(f);
}

void ebpfMonOwnAddressesRead(pid_t pid, ebpfMonOwnAddresses *own)
{
    own->count = 0;
    readIPv4(pid, own);
    readIPv6(pid, own);
}
