/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends lines to a log server by TCP, as iocLogServer of Base reads them. Never waits. Lines that the server's TCP has
 * not acknowledged stay in a buffer, and are sent again over the next connection, as whole lines. One thread; times are
 * monotonic seconds.
 */
#ifndef EBPFMON_LOGSERVER_H
#define EBPFMON_LOGSERVER_H

#include <netinet/in.h>

#include "export/shared/destination.h"

#define EBPFMON_SERVER_BUFFER (2u << 20)

typedef struct {
    ebpfMonDestination out;
    struct sockaddr_in addr;
    int      fd;         /* -1: there is no connection */
    int      up;         /* nonzero: it is connected; 0: it is being connected */
    double   connectBy, upSince;
    size_t   len;        /* bytes in buf; it begins with the first line that is not acknowledged */
    size_t   sent;       /* of these, bytes that this connection has taken */
    char     buf[EBPFMON_SERVER_BUFFER];
} ebpfMonLogServer;

/* Makes a log server, which connects at the next tick. NULL: no memory. */
ebpfMonLogServer *ebpfMonLogServerOpen(const char *name, const struct sockaddr_in *addr);

/* Adds a line, without its line feed. 0; or -1: the line is lost, and counted. */
int ebpfMonLogServerAdd(ebpfMonLogServer *s, const char *line, size_t len, double now);

/* Call it often: connects, sends, and drops lines that were acknowledged. */
void ebpfMonLogServerTick(ebpfMonLogServer *s, double now);

/* Nonzero while lines wait for the server. */
int ebpfMonLogServerIsPending(const ebpfMonLogServer *s);

/* Sends what can be sent without waiting, and counts the rest as lost. "hasWaited": the caller has given the server
 * time, so what it has not acknowledged is lost, too. Afterwards the caller reads the counts, and frees the memory. */
void ebpfMonLogServerClose(ebpfMonLogServer *s, double now, int hasWaited);

#endif
