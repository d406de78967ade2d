/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "model/settings.h"

#define RECORDS_MIN 1000u
#define RECORDS_MAX 4000000u
#define ROOTS_MIN   16u
#define RING_MIN    64u         /* KiB */
#define RING_MAX    (1u << 20)

/* 0 stands for the default, which depends on the kernel (probe/kernelLoad.c). */
static int areRecordsRight(const ebpfMonSettings *s)
{
    unsigned most = s->maxRecords ? s->maxRecords : RECORDS_MAX;

    return (!s->maxRecords || (s->maxRecords >= RECORDS_MIN && s->maxRecords <= RECORDS_MAX)) &&
           (!s->maxRoots || (s->maxRoots >= ROOTS_MIN && s->maxRoots <= most));
}

int ebpfMonSettingsCheck(ebpfMonSettings *s, char *why, size_t size)
{
    if (s->ringKiB == 0) s->ringKiB = 8192;
    if (s->wireKiB == 0) s->wireKiB = 8192;
    if (areRecordsRight(s) && s->ringKiB >= RING_MIN && s->ringKiB <= RING_MAX &&
        (s->ringKiB & (s->ringKiB - 1)) == 0 && s->wireKiB >= -1 && s->wireKiB <= (int)RING_MAX)
        return 0;
    snprintf(why, size, "maxRecords %u to %u, maxRoots %u to maxRecords, ringKiB a power of two from %u to %u, "
             "wireKiB -1 to %u", RECORDS_MIN, RECORDS_MAX, ROOTS_MIN, RING_MIN, RING_MAX, RING_MAX);
    return -1;
}
