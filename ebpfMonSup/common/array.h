/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow. */
#ifndef EBPFMON_ARRAY_H
#define EBPFMON_ARRAY_H

#include <stddef.h>

/*
 * Makes room for "need" elements of "size" bytes in *array, which has room for *room: twice as many as before, at least
 * "first". The elements stay, the new ones are not set. 0, or -1 without memory: all is as before.
 */
int ebpfMonArrayGrow(void *array, size_t *room, size_t need, size_t first, size_t size);

#endif
