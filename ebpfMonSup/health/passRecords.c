/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "health/passRecords.h"
#include "host/memory.h"

#define PASSES_MAX 4096 /* of which not one is forgotten: else a long one would be a hang */
#define LOOK_NS (EBPFMON_SECOND_NS / 2) /* a pass this old is looked at: most are shorter, and cost nothing */

typedef struct {
    uint32_t tgid, tid;
    uint64_t begin;  /* of the pass (monotonic ns); the three together identify it */
    uint64_t record; /* the one that the last look found; 0: none */
    uint64_t since;  /* the first look that found it; before the first record the begin of the pass (monotonic ns) */
    uint64_t before; /* the last look that did not (monotonic ns) */
    uint64_t looked; /* the last look that could read the stack (monotonic ns) */
    int      isSeen; /* in this look */
} passOfThread;

struct ebpfMonPassRecords {
    ebpfMonTargets        *targets;
    ebpfMonPassRecordsRead read;
    unsigned               count;
    passOfThread           pass[PASSES_MAX];
};

static int readStackBelow(pid_t pid, uint64_t sp, uint64_t word[EBPFMON_PASS_STACK])
{
    size_t size = EBPFMON_PASS_STACK * sizeof(*word);

    return ebpfMonMemReadNow(pid, sp - size, word, size);
}

ebpfMonPassRecords *ebpfMonPassRecordsNew(ebpfMonTargets *targets, ebpfMonPassRecordsRead read)
{
    ebpfMonPassRecords *records = calloc(1, sizeof(*records));

    if (!records)
        return NULL;
    records->targets = targets;
    records->read = read ? read : readStackBelow;
    return records;
}

void ebpfMonPassRecordsFree(ebpfMonPassRecords *records)
{
    free(records);
}

void ebpfMonPassRecordsBegin(ebpfMonPassRecords *records)
{
    for (unsigned i = 0; i < records->count; i++)
        records->pass[i].isSeen = 0;
}

void ebpfMonPassRecordsEnd(ebpfMonPassRecords *records)
{
    unsigned n = 0;

    for (unsigned i = 0; i < records->count; i++)
        if (records->pass[i].isSeen)
            records->pass[n++] = records->pass[i];
    records->count = n;
}

/* Finds the pass, or adds it. NULL: there are too many. */
static passOfThread *findPass(ebpfMonPassRecords *records, const ebpfMonSeenThread *thread)
{
    uint64_t begin = thread->seen.held[0].begin;

    for (unsigned i = 0; i < records->count; i++) {
        passOfThread *p = &records->pass[i];

        if (p->tgid == thread->seen.tgid && p->tid == thread->tid && p->begin == begin)
            return p;
    }
    if (records->count == PASSES_MAX)
        return NULL;
    records->pass[records->count] = (passOfThread){ .tgid = thread->seen.tgid, .tid = thread->tid, .begin = begin,
                                                    .since = begin, .before = begin, .looked = begin };
    return &records->pass[records->count++];
}

/* The record at which the list is; 0: there is none on the stack. As ebpfmon_find_root of the kernel part does it
 * (passRoot.bpf.c); while the thread waits in dbScanLock() it may be the one before. Returns 0; -1: the stack cannot be
 * read. */
static int findListRecord(const ebpfMonPassRecords *records, const struct ebpfMonThread *t, uint64_t *record)
{
    uint64_t word[EBPFMON_PASS_STACK];
    const ebpfMonTarget *target;

    *record = 0;
    if (records->read((pid_t)t->tgid, t->held[0].sp, word))
        return -1;
    ebpfMonTargetsLock(records->targets);
    target = ebpfMonTargetsFindByPid(records->targets, (pid_t)t->tgid);
    for (int i = EBPFMON_PASS_STACK - 1; i >= 0 && !*record && target && target->cat; i--)
        if (word[i] && ebpfMonCatalogueFindAddr(target->cat, word[i]) >= 0)
            *record = word[i];
    ebpfMonTargetsUnlock(records->targets);
    return 0;
}

static void noteRecord(passOfThread *p, uint64_t record, uint64_t now)
{
    if (record != p->record) {
        p->record = record;
        p->since = now;
        p->before = p->looked;
    }
    p->looked = now;
}

void ebpfMonPassRecordsSee(ebpfMonPassRecords *records, ebpfMonSeenThread *thread, uint64_t now)
{
    struct ebpfMonHeld *h = &thread->seen.held[0];
    uint64_t record;
    passOfThread *p;

    if (!thread->seen.heldCount || !h->sp || h->root || now < h->begin + LOOK_NS || !(p = findPass(records, thread)))
        return;
    p->isSeen = 1;
    if (findListRecord(records, &thread->seen, &record) == 0)
        noteRecord(p, record, now);
    h->root = p->record;
    h->begin = p->since;
    thread->doubt = p->since - p->before;
}
