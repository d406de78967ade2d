/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stack is kept for REFRESH, because reading one searches the symbols of some six files.
 *
 * Some registers must have the same value after a call as before it (callee-saved, System V ABI). process(precord),
 * readValue(precord) and such functions need the record's address after each call, so they put it into such a register.
 * The record that the thread works on is found there: it is the first record in a register that the innermost functions
 * changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "health/hangStacks.h"
#include "health/recordName.h"

#define KEPT    8 /* hangs for which a stack is shown */
#define REFRESH (5 * EBPFMON_SECOND_NS)
#define RETRIES 5 /* On a busy host the time for a stack may not suffice (STACK_SECONDS of code/stack.c). Then it is
                   * read again in the next second, so many times */

typedef struct {
    uint32_t tid;
    uint64_t begin, taken, used; /* when it hung, was read, and was last asked for (monotonic ns); 0: never */
    unsigned n, failed; /* number of frames; readings without any frame since the last good one */
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    char     record[EBPFMON_HEALTH_NAME];
} keptStack;

struct ebpfMonHangStacks {
    ebpfMonTargets *targets;
    const ebpfMonHangSources *sources;
    keptStack kept[KEPT];
};

ebpfMonHangStacks *ebpfMonHangStacksNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources)
{
    ebpfMonHangStacks *stacks = calloc(1, sizeof(*stacks));

    if (stacks) {
        stacks->targets = targets;
        stacks->sources = sources;
    }
    return stacks;
}

void ebpfMonHangStacksFree(ebpfMonHangStacks *stacks)
{
    free(stacks);
}

/* The index in kept; KEPT: this hang has no stack there. */
static unsigned findKept(const ebpfMonHangStacks *stacks, uint32_t tid, uint64_t begin)
{
    unsigned i;

    for (i = 0; i < KEPT; i++)
        if (stacks->kept[i].used && stacks->kept[i].tid == tid && stacks->kept[i].begin == begin)
            break;
    return i;
}

/* NULL: this hang has no place, because more than KEPT threads hang. */
static keptStack *takePlace(ebpfMonHangStacks *stacks, uint32_t tid, uint64_t begin, uint64_t now)
{
    keptStack *oldest = &stacks->kept[0];
    unsigned i = findKept(stacks, tid, begin);

    if (i < KEPT) {
        stacks->kept[i].used = now;
        return &stacks->kept[i];
    }
    for (i = 1; i < KEPT; i++)
        if (stacks->kept[i].used < oldest->used)
            oldest = &stacks->kept[i];
    if (oldest->used && now - oldest->used < REFRESH)
        return NULL;
    *oldest = (keptStack){ .tid = tid, .begin = begin, .used = now };
    return oldest;
}

static void findRecord(ebpfMonHangStacks *stacks, uint32_t iocId, keptStack *k)
{
    const ebpfMonTarget *t;
    int found = 0;

    k->record[0] = 0;
    ebpfMonTargetsLock(stacks->targets);
    t = ebpfMonTargetsFindById(stacks->targets, iocId);
    /* A frame changed a register if its caller has another value. The last frame has no known caller, so it is left
     * out. */
    for (unsigned f = 0; f + 1 < k->n && !found; f++)
        for (int r = 0; r < EBPFMON_SAVED && !found; r++)
            if (k->frame[f].saved[r] && k->frame[f].saved[r] != k->frame[f + 1].saved[r])
                found = ebpfMonRecordNameFind(t, k->frame[f].saved[r], k->record, sizeof(k->record));
    ebpfMonTargetsUnlock(stacks->targets);
}

static int isOld(const keptStack *k, uint64_t now)
{
    return !k->taken || (k->failed && k->failed <= RETRIES) || now - k->taken > REFRESH;
}

void ebpfMonHangStacksDescribe(ebpfMonHangStacks *stacks, pid_t pid, ebpfMonHang *hang)
{
    uint64_t now = ebpfMonClockMonotonic();
    keptStack *k = takePlace(stacks, hang->tid, hang->begin, now);
    size_t used = strlen(hang->what);
    const char *separator = ", at ";

    hang->now[0] = 0;
    if (!k)
        return;
    if (isOld(k, now)) {
        k->n = stacks->sources->readStack(pid, (pid_t)k->tid, k->frame);
        k->failed = k->n ? 0 : k->failed + 1;
        findRecord(stacks, hang->id, k);
        k->taken = now;
    }
    snprintf(hang->now, sizeof(hang->now), "%s", k->record);
    for (unsigned i = 0; i < k->n; i++) {
        const char *name = k->frame[i].name[0] ? k->frame[i].name : k->frame[i].file;

        if (used + strlen(separator) + strlen(name) >= sizeof(hang->what))
            break;
        used += (size_t)snprintf(hang->what + used, sizeof(hang->what) - used, "%s%s", separator, name);
        separator = " < ";
    }
}

/* NULL: no more lines. */
static char *addLine(ebpfMonHealth *health)
{
    return health->hangLines < EBPFMON_HANG_LINES ? health->hangLine[health->hangLines++] : NULL;
}

void ebpfMonHangStacksAddLines(const ebpfMonHangStacks *stacks, pid_t pid, const ebpfMonHang *hang,
                               ebpfMonHealth *health)
{
    unsigned at = findKept(stacks, hang->tid, hang->begin);
    const keptStack *k;
    char kernel[200] = "", *line = addLine(health);

    if (line)
        snprintf(line, EBPFMON_HANG_LINE, "%s since %.0f s", hang->who, hang->since);
    if (at == KEPT)
        return;
    k = &stacks->kept[at];
    stacks->sources->readKernelStack(pid, (pid_t)hang->tid, kernel, sizeof(kernel));
    if (kernel[0] && (line = addLine(health)) != NULL)
        snprintf(line, EBPFMON_HANG_LINE, "  in the kernel: %s", kernel);
    for (unsigned i = 0; i < k->n && (line = addLine(health)) != NULL; i++)
        snprintf(line, EBPFMON_HANG_LINE, "  #%u %s+0x%x (%s)", i, k->frame[i].name, k->frame[i].offset,
                 k->frame[i].file);
}
