/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow. No state; any thread. */
#ifndef EBPFMON_ARRAY_H
#define EBPFMON_ARRAY_H

#include <stddef.h>

/*
 * Makes room for "need" elements of "size" bytes in *array, which has room for *room elements: doubles the room until
 * it is enough, at least "first". The old elements stay; the new ones are not set. 0; or -1: no memory, and nothing has
 * changed.
 */
int ebpfMonArrayGrow(void *array, size_t *room, size_t need, size_t first, size_t size);

#endif
