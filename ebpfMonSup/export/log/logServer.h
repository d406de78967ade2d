/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines to a log server by TCP, as Base's iocLogServer takes them. Never waits: what the server's TCP has not
 * acknowledged stays in a buffer, and is sent again over the next connection, whole lines only. One thread; times in
 * seconds, monotonic.
 */
#ifndef EBPFMON_LOGSERVER_H
#define EBPFMON_LOGSERVER_H

#include <netinet/in.h>

#include "export/shared/destination.h"

#define EBPFMON_SERVER_BUFFER (2u << 20)

typedef struct {
    ebpfMonDestination out;
    struct sockaddr_in addr;
    int      fd;         /* -1: none */
    int      up;         /* else it is being connected */
    double   connectBy;
    size_t   len;        /* bytes in buf; the first line is not acknowledged yet */
    size_t   sent;       /* of those, given to this connection */
    char     buf[EBPFMON_SERVER_BUFFER];
} ebpfMonLogServer;

/* Connects at the next tick. NULL without memory. */
ebpfMonLogServer *ebpfMonLogServerOpen(const char *name, const struct sockaddr_in *addr);

/* A line without its line feed. 0, or -1: the line is lost, and counted. */
int ebpfMonLogServerAdd(ebpfMonLogServer *s, const char *line, size_t len, double now);

/* To be called often: connects, sends, drops what was acknowledged. */
void ebpfMonLogServerTick(ebpfMonLogServer *s, double now);

/* Nonzero while lines wait for the server. */
int ebpfMonLogServerIsPending(const ebpfMonLogServer *s);

/* Counts what was not acknowledged as lost. The caller reads the counts, then frees the memory. */
void ebpfMonLogServerClose(ebpfMonLogServer *s);

#endif
