/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program: each TCP segment that it sends has one byte of data. send() and writev() say that one byte was
 * taken, and callers must be ready for that. A byte waits until the one before it has left, else TCP would put both into
 * one segment. Datagrams are not touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

static int isTcp(int fd)
{
    int protocol = 0;
    socklen_t size = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
}

static void waitUntilLeft(int fd)
{
    struct pollfd end = {.fd = fd};
    int on = 1, waiting;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    while (ioctl(fd, SIOCOUTQNSD, &waiting) == 0 && waiting > 0 && poll(&end, 1, 0) == 0) /* 1: nothing leaves any more */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    if (size > 1 && isTcp(fd)) {
        waitUntilLeft(fd);
        size = 1;
    }
    return next(fd, data, size, flags);
}

ssize_t writev(int fd, const struct iovec *part, int count)
{
    static ssize_t (*next)(int, const struct iovec *, int);

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "writev");
    for (int i = 0; i < count && isTcp(fd); i++)
        if (part[i].iov_len > 0)
            return send(fd, part[i].iov_base, part[i].iov_len, 0);
    return next(fd, part, count);
}
