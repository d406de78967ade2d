/* SPDX-License-Identifier: BSD-3-Clause */
/* How the inventory is kept in a file: the shell sets it, and the monitor does it. */
#ifndef EBPFMON_INVENTORYCONF_H
#define EBPFMON_INVENTORYCONF_H

typedef struct {
    char     file[256];  /* empty: no file is kept */
    unsigned seconds;    /* s; the shortest time between two writes */
    unsigned keep;       /* number of older files that stay; FILE.1 is the newest of them */
} ebpfMonInventoryConf;

#endif
