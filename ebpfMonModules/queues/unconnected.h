/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is not connected, and why: CA links of the watched IOCs that have no channel, and names that other programs of
 * this host search in vain (search/search.h). The reason is what packets, sockets and /proc show; a thread looks every
 * five seconds, as long as something is not connected.
 */
#ifndef EBPFMON_UNCONNECTED_H
#define EBPFMON_UNCONNECTED_H

#include "ebpfMonModule.h"
#include "host/procInfo.h"
#include "search/search.h"

#define EBPFMON_UNCONNECTED_ROWS 200

/* A row of the table UNCONNECTED. */
typedef struct {
    char   pv[EBPFMON_SEARCH_NAME_SIZE];
    char   client[EBPFMON_IOCNAME_SIZE + 80]; /* "IOC x, link A.INP", "caget (4711)" */
    char   reason[300];
    double seconds;         /* for so long at least */
    int    isFault;         /* more is known than that no answer was seen */
} ebpfMonUnconnectedRow;

typedef struct {
    unsigned links;         /* CA links that are read */
    unsigned unconnected;   /* of them */
    unsigned faults;        /* rows with isFault */
    double   cost;          /* percent of one core */
    char     state[560];
    unsigned rows;
    ebpfMonUnconnectedRow row[EBPFMON_UNCONNECTED_ROWS];
} ebpfMonUnconnectedValues;

typedef struct ebpfMonUnconnected ebpfMonUnconnected;

/* There is one in a process, never freed. NULL without memory. */
ebpfMonUnconnected *ebpfMonUnconnectedNew(const ebpfMonModule *module);
int ebpfMonUnconnectedBegin(ebpfMonUnconnected *u, const ebpfMonModuleCore *core);
/* A message in a packet, as ebpfMonModule.message. */
void ebpfMonUnconnectedAddEvent(ebpfMonUnconnected *u, const struct ebpfMonWireEvent *ev);
int ebpfMonUnconnectedStop(ebpfMonUnconnected *u, double seconds);

/* The published values. Under the lock of ebpfMonModuleLock. */
const ebpfMonUnconnectedValues *ebpfMonUnconnectedGetValues(const ebpfMonUnconnected *u);

#endif
