/* SPDX-License-Identifier: BSD-3-Clause */
/* How the inventory is announced: the shell sets it, and the monitor does it. */
#ifndef EBPFMON_RECSYNCCONF_H
#define EBPFMON_RECSYNCCONF_H

typedef struct {
    int      isOn;
    unsigned port;           /* UDP port for the announcements of servers */
    char     variables[512]; /* names of more environment variables that are sent, with blanks between them */
} ebpfMonRecSyncConf;

#endif
