/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "watch/seenProcesses.h"

/* Processes whose pids are equal but for a multiple of SETS share the places of a set. There must be several: threads
 * of the kernel live for ever, and have pids in sequence. With one place, each scan forgot the processes that share
 * theirs. */
#define SETS 2048 /* a power of two */
#define WAYS 4

struct ebpfMonSeenProcesses {
    ebpfMonSeenProcess places[SETS][WAYS];
};

ebpfMonSeenProcesses *ebpfMonSeenProcessesNew(void)
{
    return calloc(1, sizeof(ebpfMonSeenProcesses));
}

void ebpfMonSeenProcessesFree(ebpfMonSeenProcesses *seen)
{
    free(seen);
}

static ebpfMonSeenProcess *getSet(ebpfMonSeenProcesses *seen, pid_t pid)
{
    return seen->places[(unsigned)pid & (SETS - 1)];
}

ebpfMonSeenProcess *ebpfMonSeenProcessesFind(ebpfMonSeenProcesses *seen, pid_t pid)
{
    ebpfMonSeenProcess *set = getSet(seen, pid);

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].pid == pid)
            return &set[i];
    return NULL;
}

static uint64_t findLastTime(const ebpfMonSeenProcess *p)
{
    uint64_t last = p->looked > p->seen ? p->looked : p->seen;

    return p->checked > last ? p->checked : last;
}

ebpfMonSeenProcess *ebpfMonSeenProcessesGet(ebpfMonSeenProcesses *seen, pid_t pid, uint64_t start, uint64_t now)
{
    ebpfMonSeenProcess *set = getSet(seen, pid), *place = ebpfMonSeenProcessesFind(seen, pid);

    if (place && place->start == start)
        return place;
    if (!place) { /* those that have ended were not looked at for longest */
        place = set;
        for (unsigned i = 1; i < WAYS; i++)
            if (findLastTime(&set[i]) < findLastTime(place))
                place = &set[i];
    }
    *place = (ebpfMonSeenProcess){ .pid = pid, .start = start, .seen = now };
    return place;
}
