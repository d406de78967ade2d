/* SPDX-License-Identifier: BSD-3-Clause */
/* How the inventory is kept in a file: what the shell sets, and the monitor does. */
#ifndef EBPFMON_INVENTORYCONF_H
#define EBPFMON_INVENTORYCONF_H

typedef struct {
    char     file[256];  /* empty: nothing is kept */
    unsigned seconds;    /* it is written no more often */
    unsigned keep;       /* so many older ones stay: FILE.1 is the newest of them */
} ebpfMonInventoryConf;

#endif
