/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow, and arrays that live and die together. No state; any thread. */
#ifndef EBPFMON_ARRAY_H
#define EBPFMON_ARRAY_H

#include <stddef.h>

/*
 * Makes room for "need" elements of "size" bytes in *array, which has room for *room elements: doubles the room until
 * it is enough, at least "first". The old elements stay; the new ones are not set. 0; or -1: no memory, and nothing has
 * changed.
 */
int ebpfMonArrayGrow(void *array, size_t *room, size_t need, size_t first, size_t size);

/* An array that ebpfMonArraysMake makes: where its pointer is, and the size of an element. */
typedef struct {
    void  *array;
    size_t size;
} ebpfMonArrayPart;

#define EBPFMON_PART(pointer) { &(pointer), sizeof(*(pointer)) }

/* Makes arrays of "count" elements each, all bytes 0, in one block, and sets their pointers. Returns the block, which
 * the caller frees; NULL without memory: then no pointer is set. */
void *ebpfMonArraysMake(size_t count, const ebpfMonArrayPart *part, unsigned parts);

#endif
