/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cantProceed.h>

#include "host/netnsSocket.h"

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
