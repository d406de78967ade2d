/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "common/clock.h"
#include "host/foreign.h"
#include "host/ownMemory.h"
#include "ioc/recordLinks.h"
#include "watch/targetDatabase.h"
#include "watch/targetLayouts.h"

#define LOOK_NS     500000000ull   /* between two looks for new records while it starts, at least … */
#define LOOK_OFF_NS 30000000000ull /* … and at level off, once it runs */
#define READ_SHARE  20             /* to read databases takes a twentieth of the time at most */
#define CHARGE_NS   100000000ull   /* a reading that failed after this is charged to the user */
#define RESERVE_BYTES (64ull << 20) /* memory that is kept for queues, clients and packets: no IOC is watched with it */
#define RECORD_BYTES  2048          /* what one record takes, at most (documentation/use/limits.md) */
#define SHORT_NS      2000000000ull /* between two looks whether there is memory again */

/* 0: it was read, or is the one that we have. -1: it cannot be read. */
static int readCatalogue(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t,
                         char why[EBPFMON_NOTE_SIZE])
{
    ebpfMonCatalogue *cat, *old = t->cat;

    ebpfMonMemFlush(t->follower.mem);
    ebpfMonMemAllowPause(t->follower.mem, 1);
    cat = ebpfMonCatalogueRead(t->follower.mem, t->image.pdbbase, why, EBPFMON_NOTE_SIZE);
    ebpfMonMemAllowPause(t->follower.mem, 0);
    if (!cat) {
        if (ebpfMonMemIsOver(t->follower.mem))
            snprintf(why, EBPFMON_NOTE_SIZE,
                     "its database takes more memory or time to read than its size explains: set aside");
        return -1;
    }
    ebpfMonTargetLayoutsChoose(t, cat);
    if (old && ebpfMonCatalogueHasSameRecords(cat, old)) { /* aliases came (dbCreateAlias): all counts go on */
        ebpfMonTargetsLock(targets);
        ebpfMonRecordLinksTakeOver(cat, old);
        t->cat = cat;
        ebpfMonTargetsUnlock(targets);
    } else {
        if (old)
            ebpfMonRecordTablesRemove(tables, t);
        ebpfMonTargetsLock(targets);
        t->cat = cat;
        ebpfMonTargetsUnlock(targets);
        ebpfMonRecordTablesAddArrays(tables, t);
    }
    t->follower.nodes = ebpfMonCatalogueCountNodes(t->follower.mem, t->image.pdbbase);
    ebpfMonCatalogueRelease(old);
    return 0;
}

/* Without this reserve our own server, queues and logs would fail, and the kernel might kill this process. */
static int hasMemory(long nodes)
{
    return ebpfMonOwnMemoryLeft() >= RESERVE_BYTES + (uint64_t)nodes * RECORD_BYTES;
}

/* Nobody asked for more than its name, and it has one. */
static int isLeftAlone(const ebpfMonTarget *t)
{
    return t->running && t->wantedLevel == ebpfMonLevelOff;
}

/* The time that a look at it takes, without the time that this thread waits for a CPU, or looks at others meanwhile. */
static uint64_t findTimeSpent(const ebpfMonTarget *t)
{
    return ebpfMonClockThreadCpu() + ebpfMonMemGetWaited(t->follower.mem) - ebpfMonMemGetPaused(t->follower.mem);
}

int ebpfMonTargetDatabaseLook(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t, long most,
                              uint64_t now, char why[EBPFMON_NOTE_SIZE])
{
    uint64_t begin = findTimeSpent(t), took, pause = (now - t->follower.foundAt) / 10, least;
    long nodes;
    int rc = 0;

    why[0] = 0;
    t->follower.isShort = 0;
    ebpfMonMemFlush(t->follower.mem);
    nodes = ebpfMonCatalogueCountNodes(t->follower.mem, t->image.pdbbase);
    if (most && nodes > most) {
        ebpfMonMemFlush(t->follower.mem);
        return -1;
    }
    if (!t->cat || (nodes > 0 && nodes != t->follower.nodes)) {
        t->follower.isShort = nodes >= 0 && !hasMemory(nodes);
        rc = t->follower.isShort ? -1 : readCatalogue(targets, tables, t, why);
    }
    if (t->follower.isShort) {
        snprintf(why, EBPFMON_NOTE_SIZE,
                 "not watched: too little memory is left for its %ld records. Raise the limit (MemoryMax, "
                 "ulimit -v), or watch fewer IOCs",
                 nodes);
        pause = SHORT_NS;
    }
    ebpfMonMemFlush(t->follower.mem);
    took = findTimeSpent(t) - begin;
    now = ebpfMonClockMonotonic();
    if (rc && took > CHARGE_NS)
        ebpfMonForeignCharge(t->pid, took);
    if (pause < READ_SHARE * took)
        pause = READ_SHARE * took;
    least = !t->cat ? 0 : isLeftAlone(t) ? LOOK_OFF_NS : LOOK_NS;
    t->follower.readAt = now + (pause < least ? least : pause);
    return rc;
}
