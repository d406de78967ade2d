/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

int ebpfMonArrayGrow(void *array, size_t *room, size_t need, size_t first, size_t size)
{
    size_t want = *room ? *room : first;
    void *before, *after;

    if (need <= *room)
        return 0;
    while (want < need) {
        if (want > SIZE_MAX / 2)
            return -1;
        want *= 2;
    }
    if (want > SIZE_MAX / size)
        return -1;
    /* the caller's pointer may have any type. Its bytes are copied, because C has no type for a pointer to any
     * pointer */
    memcpy(&before, array, sizeof(before));
    after = realloc(before, want * size);
    if (!after)
        return -1;
    memcpy(array, &after, sizeof(after));
    *room = want;
    return 0;
}

#define ALIGNED(size) (((size) + 15) & ~(size_t)15)

void *ebpfMonArraysMake(size_t count, const ebpfMonArrayPart *part, unsigned parts)
{
    size_t sum = 0;
    char *block;

    for (unsigned i = 0; i < parts; i++) {
        if (count > (SIZE_MAX / 2 - sum) / part[i].size)
            return NULL;
        sum += ALIGNED(count * part[i].size);
    }
    block = calloc(1, sum + 1);
    sum = 0;
    for (unsigned i = 0; block && i < parts; i++) {
        char *at = block + sum;

        memcpy(part[i].array, &at, sizeof(at)); /* as above */
        sum += ALIGNED(count * part[i].size);
    }
    return block;
}
