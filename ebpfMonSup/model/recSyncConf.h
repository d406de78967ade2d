/* SPDX-License-Identifier: BSD-3-Clause */
/* How the inventory is announced: the shell sets it, and the monitor does it. */
#ifndef EBPFMON_RECSYNCCONF_H
#define EBPFMON_RECSYNCCONF_H

typedef enum {
    ebpfMonRecSyncNoOthers,
    ebpfMonRecSyncServers, /* their environment and ports */
    ebpfMonRecSyncPvs      /* and the PVs that packets have shown */
} ebpfMonRecSyncOthers;

typedef struct {
    int      isOn;
    ebpfMonRecSyncOthers others; /* what is announced of servers that are not EPICS Base */
    unsigned port;           /* UDP port for the announcements of servers */
    char     variables[512]; /* names of more environment variables that are sent, with blanks between them */
} ebpfMonRecSyncConf;

#endif
