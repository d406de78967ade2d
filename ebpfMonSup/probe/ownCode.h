/* SPDX-License-Identifier: BSD-3-Clause */
/* Where code of this process stands in its file: what a uprobe is attached to. */
#ifndef EBPFMON_OWNCODE_H
#define EBPFMON_OWNCODE_H

#include <stddef.h>
#include <stdint.h>

/* 0, or -1: it has no file that can be named. */
int ebpfMonOwnCodeFind(uint64_t addr, char *path, size_t size, uint64_t *offset);

#endif
