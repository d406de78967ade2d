/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the place of a function of this process in its file, for a uprobe. */
#ifndef EBPFMON_OWNCODE_H
#define EBPFMON_OWNCODE_H

#include <stddef.h>
#include <stdint.h>

/* "addr": address of the code. "path" (of "size" bytes) gets its file, *offset the byte in the file. 0, or -1: it has
 * no file that can be opened. Any thread. */
int ebpfMonOwnCodeFind(uint64_t addr, char *path, size_t size, uint64_t *offset);

#endif
