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
