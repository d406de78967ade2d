/* SPDX-License-Identifier: BSD-3-Clause */
/* How the inventory is announced: what the shell sets, and the monitor does. */
#ifndef EBPFMON_RECSYNCCONF_H
#define EBPFMON_RECSYNCCONF_H

typedef struct {
    int      isOn;
    unsigned port;           /* UDP, of the announcements of servers */
    char     variables[512]; /* further names of environment variables to send, with blanks between them */
} ebpfMonRecSyncConf;

#endif
