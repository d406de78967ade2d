/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a name is not reached, in a sentence: from the search (search/search.h), the sockets of the client's network
 * namespace, the environment of the client, and the records of watched IOCs. Only unconnected.c uses this, in its
 * thread. It says what was seen, and guesses nothing.
 */
#ifndef EBPFMON_REASONS_H
#define EBPFMON_REASONS_H

#include "host/procInfo.h"
#include "search/search.h"

#define EBPFMON_REASON_SOCKETS 2048 /* UDP sockets of a look, at most */
#define EBPFMON_REASON_OWNERS  2

/* An IOC that has a record of this name. */
typedef struct {
    pid_t pid;
    char  name[EBPFMON_IOCNAME_SIZE];
} ebpfMonReasonOwner;

typedef struct {
    ebpfMonSearchState search;
    pid_t    client;        /* its process; 0: not known */
    unsigned owners;        /* that were found, EBPFMON_REASON_OWNERS at most */
    ebpfMonReasonOwner owner[EBPFMON_REASON_OWNERS];
} ebpfMonReasonQuestion;

typedef struct {
    uint32_t netns, addr;   /* network byte order, the port too; 0: any */
    uint16_t port;
    unsigned long inode;
    pid_t    pid;           /* 0: not known */
} ebpfMonReasonSocket;

/* The UDP sockets of this host, and who has them. */
typedef struct {
    unsigned count;
    ebpfMonReasonSocket socket[EBPFMON_REASON_SOCKETS];
} ebpfMonReasonSockets;

/* Reads the UDP sockets in the namespaces of these processes, and in our own; then who has those at the wanted ports
 * (network byte order). Looks at the files of all processes if there is one: milliseconds. */
void ebpfMonReasonSocketsRead(ebpfMonReasonSockets *s, const pid_t *pids, unsigned count, const uint16_t *port,
                              unsigned ports);

/* The process that sends from there; 0: not known. */
pid_t ebpfMonReasonFindClient(const ebpfMonReasonSockets *s, const struct ebpfMonPeer *way);

/* Sets the sentence. Nonzero: something is wrong, more than that no answer was seen. */
int ebpfMonReasonDescribe(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size);

#endif
