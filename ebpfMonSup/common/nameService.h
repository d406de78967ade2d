/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asks the name service (nsswitch.conf(5)), which may wait for a server on the network for ever. So a thread of its own
 * asks, and is left to itself if no answer comes. Any thread.
 */
#ifndef EBPFMON_NAMESERVICE_H
#define EBPFMON_NAMESERVICE_H

#include <stddef.h>
#include <netinet/in.h>
#include <sys/types.h>

#define EBPFMON_NAMES_SECONDS 5.0 /* that an answer is waited for, at a command */

typedef enum {
    ebpfMonNameFound,
    ebpfMonNameUnknown,
    ebpfMonNameSilent    /* no answer came in time */
} ebpfMonNameAnswer;

ebpfMonNameAnswer ebpfMonNameServiceFindUser(const char *name, double seconds, uid_t *uid);
ebpfMonNameAnswer ebpfMonNameServiceFindUserName(uid_t uid, double seconds, char *buf, size_t size);

/* "text": HOST or HOST:PORT, with this port if it has none, as for aToIPAddr() of Base. */
ebpfMonNameAnswer ebpfMonNameServiceFindAddress(const char *text, unsigned short port, double seconds,
                                                struct sockaddr_in *addr);

#endif
