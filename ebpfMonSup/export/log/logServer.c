/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "export/log/logServer.h"

#define CONNECT_MOST 5.0   /* s */
#define RETRY_MOST   30.0  /* s */
#define SURE_AFTER   5.0   /* s */
#define IDLE_S       30
#define SILENT_MS    30000 /* ms; a server that acknowledges nothing for so long has failed */

ebpfMonLogServer *ebpfMonLogServerOpen(const char *name, const struct sockaddr_in *addr)
{
    ebpfMonLogServer *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    snprintf(s->out.name, sizeof(s->out.name), "%s", name);
    s->addr = *addr;
    s->fd = -1;
    return s;
}

/* Drops the whole lines in the first n bytes: they count as written. */
static void dropLines(ebpfMonLogServer *s, size_t n)
{
    while (n && s->buf[n - 1] != '\n')
        n--;
    if (!n)
        return;
    s->out.lines += ebpfMonDestinationCountLines(s->buf, n);
    memmove(s->buf, s->buf + n, s->len - n);
    s->len -= n;
    s->sent -= n;
}

/* Lines that the server's TCP has acknowledged count as written. Nothing tells what the server did with them. */
static void dropAcknowledged(ebpfMonLogServer *s)
{
    int queued = 0;

    if (!ioctl(s->fd, SIOCOUTQ, &queued) && queued >= 0 && (size_t)queued <= s->sent)
        dropLines(s, s->sent - (size_t)queued);
}

/* A proxy (haproxy, ssh -L) accepts a connection and lines, and closes when it finds that the server behind it is down.
 * So after trouble a connection must last for some seconds; its lines are kept until then. */
static int isSure(const ebpfMonLogServer *s, double now)
{
    return s->up && (!s->out.trouble || now - s->upSince >= SURE_AFTER);
}

static void setDown(ebpfMonLogServer *s, double now, const char *why)
{
    if (isSure(s, now))
        dropAcknowledged(s);
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    s->up = 0;
    ebpfMonDestinationSetTrouble(&s->out, now, RETRY_MOST, "server down (%s): start it, it is tried again by itself",
                                 why);
}

static void startConnect(ebpfMonLogServer *s, double now)
{
    int on = 1, silent = SILENT_MS, idle = IDLE_S;

    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0) {
        setDown(s, now, strerror(errno));
        return;
    }
    setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(s->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(s->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
    s->connectBy = now + CONNECT_MOST;
    if (connect(s->fd, (struct sockaddr *)&s->addr, sizeof(s->addr)) && errno != EINPROGRESS)
        setDown(s, now, strerror(errno));
}

/* Nonzero: it is connected. */
static int finishConnect(ebpfMonLogServer *s, double now)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof(error);

    if (poll(&p, 1, 0) <= 0) {
        if (now >= s->connectBy)
            setDown(s, now, "no answer");
        return 0;
    }
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
        setDown(s, now, strerror(error ? error : errno));
        return 0;
    }
    s->up = 1;
    s->upSince = now;
    s->sent = 0; /* lines that the last connection did not acknowledge are sent again as a whole */
    return 1;
}

/* Nonzero: the connection has ended. iocLogServer shuts down its side at once (acceptNewClient of iocLogServer.c), so
 * we read an end although it works. We find that it has died when we send, or by keep-alive. */
static int hasEnded(ebpfMonLogServer *s, double now)
{
    struct pollfd p = {.fd = s->fd};
    int error = 0;
    socklen_t size = sizeof(error);
    char noise[512]; /* what the server sends is dropped */

    if (recv(s->fd, noise, sizeof(noise), 0) < 0 && errno != EAGAIN && errno != EINTR)
        error = errno;
    if (!error && (poll(&p, 1, 0) <= 0 || !(p.revents & (POLLERR | POLLHUP))))
        return 0;
    if (!error)
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    setDown(s, now, error && error != EPIPE ? strerror(error) : "it closed the connection");
    return 1;
}

static void sendLines(ebpfMonLogServer *s, double now)
{
    while (s->sent < s->len) {
        ssize_t n = send(s->fd, s->buf + s->sent, s->len - s->sent, MSG_NOSIGNAL);

        if (n > 0) {
            s->sent += (size_t)n;
        } else {
            if (errno != EAGAIN && errno != EINTR)
                setDown(s, now, errno == EPIPE ? "it closed the connection" : strerror(errno));
            return;
        }
    }
}

void ebpfMonLogServerTick(ebpfMonLogServer *s, double now)
{
    if (s->fd < 0) {
        if (now < s->out.retryAt)
            return;
        startConnect(s, now);
    }
    if (s->fd < 0 || (!s->up && !finishConnect(s, now)))
        return;
    if (hasEnded(s, now))
        return;
    sendLines(s, now);
    if (!isSure(s, now))
        return;
    dropAcknowledged(s);
    if (!s->out.lostNow || s->len < sizeof(s->buf) / 2)
        ebpfMonDestinationSetWorking(&s->out);
}

int ebpfMonLogServerAdd(ebpfMonLogServer *s, const char *line, size_t len, double now)
{
    if (!s->out.lostNow && s->len + len + 1 > sizeof(s->buf) && s->up)
        ebpfMonLogServerTick(s, now);
    if (s->out.lostNow || s->len + len + 1 > sizeof(s->buf)) {
        ebpfMonDestinationAddLost(&s->out, 1);
        if (isSure(s, now))
            ebpfMonDestinationSetTrouble(&s->out, now, RETRY_MOST, "server too slow: log fewer puts (mode changes or "
                                         "burst), or take a faster one");
        return -1;
    }
    memcpy(s->buf + s->len, line, len);
    s->buf[s->len + len] = '\n';
    s->len += len + 1;
    return 0;
}

int ebpfMonLogServerIsPending(const ebpfMonLogServer *s)
{
    return s->len > 0 && !(s->fd < 0 && s->out.trouble);
}

void ebpfMonLogServerClose(ebpfMonLogServer *s, double now, int hasWaited)
{
    if (s->up)
        ebpfMonLogServerTick(s, now);
    if (s->up)
        dropAcknowledged(s);
    if (s->up && !hasWaited && !s->out.trouble) /* the kernel goes on with what it has taken, but a server that is too
                                                 * slow, or does not answer, may never read it */
        dropLines(s, s->sent);
    ebpfMonDestinationAddLost(&s->out, ebpfMonDestinationCountLines(s->buf, s->len));
    s->len = 0;
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
