/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program: each TCP segment that it sends has one byte of data. To what ends with MSG_EOR TCP adds
 * nothing, also when it sends it again (tcp_skb_can_collapse_to, include/net/tcp.h). Datagrams are not touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int isTcp(int fd)
{
    int protocol = 0;
    socklen_t size = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    static ssize_t (*next)(int, const void *, size_t, int);
    size_t sent = 0;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    if (!isTcp(fd))
        return next(fd, data, size, flags);
    while (sent < size && next(fd, (const char *)data + sent, 1, flags | MSG_EOR) == 1)
        sent++;
    return sent || !size ? (ssize_t)sent : -1;
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
