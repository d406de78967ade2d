/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables (BPF maps) that the kernel part and the user part share: keys, values, sizes. maps.bpf.h declares the maps;
 * probe/ reads and writes them by the names and structs of this header.
 */
#ifndef EBPFMON_TABLE_H
#define EBPFMON_TABLE_H

#include "ebpfMonEvent.h"
#include "ebpfMonLog2.h"

/* Places in the tables whose size is fixed. Those by slot, the closures, the roots and the event ring are sized by
 * ebpfMonConfigure. */
#define EBPFMON_TARGETS_MAX   1024  /* targets, hits, queues */
#define EBPFMON_SHARES        1024  /* a power of two */
#define EBPFMON_SHARE_TIMES   4
#define EBPFMON_THREADS_MAX   8192
#define EBPFMON_RELEASED_MAX  16384
#define EBPFMON_QUEUED_MAX    8192
#define EBPFMON_KEPT_MAX      4096
#define EBPFMON_ARRAYS_MAX    16384
#define EBPFMON_OWNERS_MAX    16384
#define EBPFMON_CONNECTS_MAX  4096
#define EBPFMON_CAUSES_MAX    8192
#define EBPFMON_NOTIFIES_MAX  8192
#define EBPFMON_LISTS_MAX     16384
#define EBPFMON_PLAIN_MAX     1024

/* --- tables that the user part writes -------------------------------------------------------------------------- */

/* Map "targets", by process id (tgid). Offsets into structs of the IOC's EPICS Base, in bytes. */
struct ebpfMonTargetConf {
    __u64 asActive;  /* address of the IOC's variable asActive, 0: none */
    __u64 slowNs;    /* chains that take this long are kept whole, 0: none */
    __u64 queuesSince; /* since when all queues are watched: older entries may have been taken out unseen */
    __u32 iocId;
    __u32 sample;    /* level trace: keep one chain in this many */
    __u16 level;     /* enum ebpfMonKernelLevel */
    /* dbCommon, from the IOC's own dbFldDes */
    __u16 time, pact, ppn, lset, disp, sevr, stat, spvt;
    /* rsrv/server.h: struct client, struct channel_in_use */
    __u16 clAddr, clUser, clHost, clRecvBuf, clRecvStk, clRecvCnt;
    __u16 ciuClient, ciuDbch, ciuAs;
    __u16 asAccess;  /* asLib.h: struct asgClient.access */
    __u16 ppnChan, ppnUsr; /* dbNotify.h: struct processNotify */
    __u16 parallel;  /* several threads take callbacks out of one queue */
    /* what differs between releases of Base: see ioc/baseRelease.h */
    __u8 dbfGap;
    __u8 chanAddr;   /* 0: a DBADDR stands where others have a dbChannel */
    __u8 linkType, linkValue, linkPvname, linkPvlMask; /* link.h: struct link */
    __u8 ringHead;
    __u8 hasThreadNames, onceHasLink;
    __u8 pad[3];
    __u64 movedTaken; /* ebpfMonMoved.added, when the lists were made */
    __u32 sweeps;     /* nonzero: passes are watched, not chains; another number each time that begins */
    __u32 zero;       /* as in struct ebpfMonRecConf */
    __u32 turn;       /* chains of scan lists are timed in turns: another number each time that begins; never 0 */
    __u32 untimed;    /* nonzero: now they are not */
};

/*
 * What an IOC has in the event ring: bytes that were sent, and that were read; never set back. An IOC may have
 * EBPFMON_SHARE_TIMES as much as is free, and no more: so one that floods the ring takes four fifths of it, two four ninths
 * each, and there is room for the others (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 130).
 */
struct ebpfMonShare {
    __u64 sent; /* kernel part */
    __u64 read; /* user part */
};

/* The place of an IOC: two whose ids are alike in these bits share one. */
static inline __u32 ebpfMonShareOf(__u32 iocId)
{
    return iocId & (EBPFMON_SHARES - 1);
}

/* What an event takes in the ring, with its header (kernel/bpf/ringbuf.c). */
static inline __u64 ebpfMonShareSize(__u64 size)
{
    return (size + 8 + 7) & ~7ull;
}

/* Map "recIndex": the slot of a record (__u32) by its address. */
struct ebpfMonRecKey {
    __u32 tgid;
    __u32 pad;
    __u64 precord;
};

/* Map "arrays": where an array field keeps its elements and their number, by the address of its dbFldDes. */
struct ebpfMonFieldKey {
    __u64 pfldDes;
    __u64 tgid;
};

struct ebpfMonArrayConf {
    __u16 ptr;   /* offset in the record of the pointer to the elements */
    __u16 count; /* … of the 32-bit number of elements in use */
};

/* ebpfMonRecState.noted: the record is processing asynchronously */
#define EBPFMON_NOTED_BUSY  1 /* who began that is not known: it was before the probes, or one of too many */
#define EBPFMON_NOTED_CAUSE 2 /* map "causes" has who */

/* ebpfMonRecConf.flags */
#define EBPFMON_REC_NOTIME   1 /* the time stamp does not tell that it processed: always look at its whole chain */
#define EBPFMON_REC_UNWANTED 2 /* level trace: the filter wants no record of its chain */
#define EBPFMON_REC_SINGLE   4 /* stretches are about to change: look at each record by itself */

/*
 * A snapshot reads TIME and PACT of a record at once, since each read of user memory costs as much as all the rest:
 * PACT must lie in the EBPFMON_TIME_WINDOW bytes before TIME. A chain that is kept has SEVR, STAT, TIME and mostly VAL
 * of each record read at once: they must lie within EBPFMON_RECORD_SPAN bytes. The catalogue checks both.
 */
#define EBPFMON_TIME_WINDOW 88
#define EBPFMON_RECORD_SPAN 512

/* Map "recConf", by slot; mapped into the user part. */
struct ebpfMonRecConf {
    __u32 first;  /* its closure: closure[first … first+len-1], itself included */
    __u32 len;    /* 0: not watched */
    __u16 valOff;
    __u8  valSize;
    __u8  flags;  /* EBPFMON_REC_… */
    __u32 zero;   /* 0, which the verifier must not know: it would unroll a loop that begins at a number it knows */
    __u32 groupFirst, groupLen; /* of the first record of a group: its records that scan lists process */
};

/*
 * Map "closure": two entries an element, because an array map rounds its elements up to 8 bytes and the user part sees
 * it mapped as it lies in memory: closure[i] is element i / 2, entry[i % 2].
 *
 * An entry is a slot and, in the high bits, how many of the following entries belong to the same stretch: records each
 * of which is processed by the forward link of the one before and by nothing else. If the last one processed, so did all
 * before it, and one look shows them all. The bank says which of the two counters of such passes is in use: it
 * changes with the closures, so that every pass counts for the stretch that it was seen in.
 */
struct ebpfMonClosurePair {
    __u32 entry[2];
};

#define EBPFMON_SLOT_BITS   25
#define EBPFMON_STRETCH_MAX 63
#define EBPFMON_ENTRY(slot, ahead, bank) \
    ((__u32)(slot) | (__u32)(ahead) << EBPFMON_SLOT_BITS | (__u32)(bank) << 31)
#define EBPFMON_ENTRY_SLOT(e)  ((e) & ((1u << EBPFMON_SLOT_BITS) - 1))
#define EBPFMON_ENTRY_AHEAD(e) ((e) >> EBPFMON_SLOT_BITS & EBPFMON_STRETCH_MAX)
#define EBPFMON_ENTRY_BANK(e)  ((e) >> 31)

/* --- tables that the kernel part writes ------------------------------------------------------------------------ */

/*
 * Map "recState", by slot; mapped into the user part. The kernel part writes it while the record's lock set is held. The
 * user part writes "addr" and "last"; while no chain can end at the record's stretch it clears a bank of "pass", and it
 * changes "time" by compare and exchange. A look at a record touches this and the record alone.
 */
struct ebpfMonRecState {
    __u64 addr;    /* of the record; 0: none has this slot */
    __u64 time;    /* the time stamp last seen, or a later one from before the record processed again */
    __u64 count;   /* processings seen by snapshots, one by one */
    __u64 pass[2]; /* chains seen to run from here to the end of its stretch, by bank: one processing of each
                      record from this one to the last but one */
    __u64 stamp;   /* end of the chain that processed it last */
    __u64 passStamp; /* … that ran from here to the end of its stretch. While there are no stretches: of the first record
                      * of a group, when a thread entered the group */
    __u32 pending; /* asynchronous: begun and not yet completed */
    __u16 seen;    /* nonzero once "time" is valid */
    __u16 noted;   /* EBPFMON_NOTED_… */
    __u32 last;    /* slot of the last record of its stretch: when that was seen to process, so had this one. Its own
                      slot: it is in no stretch, or the last */
    __u32 group;   /* slot of the first record of its group: of all records that links connect with it */
    __u32 inside;  /* of the first record of a group: EBPFMON_INSIDE_… */
    __u32 moved;   /* nonzero: it is in ebpfMonMoved; the user part clears it */
    __u64 trapped; /* processings seen by the trap, while it is attached */
    __u64 entered; /* calls of dbProcess, while the reference trap is attached */
};

/* ebpfMonRecState.inside: how many threads may process records of the group that no scan list made them process … */
#define EBPFMON_INSIDE_COUNT   0x7fff
#define EBPFMON_INSIDE_SKIPPED 0x8000  /* … and a sweep left out records for that reason: the last of them looks */
#define EBPFMON_INSIDE_TURN    0x10000 /* added by each that leaves */

/* Map "lists": the records that a scan list processes, closure[first … first+len-1]; by the mutex of the list. */
struct ebpfMonListKey {
    __u64 mutex;
    __u64 tgid;
};

struct ebpfMonList {
    __u32 first, len;
};

/* Map "plainPrograms": programs that are no IOCs; their starts are not sent. Map "found", by tgid: processes that are IOCs; all
 * their starts are sent. The values mean nothing. */

/* Map "moved", by tgid: records that may have gone to another scan list. The kernel part writes it. */
#define EBPFMON_MOVED_MAX 256 /* power of two */

struct ebpfMonMoved {
    __u64 added;  /* since passes are watched */
    __u64 missed; /* nonzero: a sweep may not have seen all */
    __u64 stuck;  /* nonzero: a thread did not leave a group, or leaves it at a place that is not watched */
    __u64 slow;   /* passes that may have had a chain of ebpfMonTargetConf.slowNs, which was not timed … */
    __u64 slowItself; /* … of these, passes that were as slow without what they waited for a CPU */
    __u32 slot[EBPFMON_MOVED_MAX]; /* the last ones: number n is at n % EBPFMON_MOVED_MAX */
};

/* Map "roots", by slot. */
struct ebpfMonRootStat {
    __u64 chains; /* all */
    __u64 processed; /* records that they processed, as far as the snapshots counted them */
    __u64 count;  /* those that were timed: the sum of hist */
    __u64 last;   /* ns with the lock held */
    __u64 sum;
    __u64 max;
    __u64 waitSum;
    __u64 waitMax;
    __u32 hist[EBPFMON_BUCKETS];
};

#define EBPFMON_ALARM_TIMEOUT 10 /* epicsAlarmTimeout (alarm.h) */

/* The longest of something in a while: in the present window and in the one before. */
struct ebpfMonRecent {
    __u64 window;  /* number of the present one: time >> EBPFMON_WINDOW_BITS */
    __u64 max, maxBefore;
    __u64 who, whoBefore; /* the record that it was */
};

#define EBPFMON_WINDOW_BITS 33 /* 8.6 s */

static inline void ebpfMonRecentAdd(struct ebpfMonRecent *r, __u64 now, __u64 value, __u64 who)
{
    __u64 window = now >> EBPFMON_WINDOW_BITS;

    if (r->window != window) {
        r->maxBefore = r->window + 1 == window ? r->max : 0;
        r->whoBefore = r->who;
        r->max = 0;
        r->window = window;
    }
    if (value >= r->max) {
        r->max = value;
        r->who = who;
    }
}

/* Map "asyncs", by slot: asynchronous processings of a record, from the begin of the chain that left PACT set to the end of
 * the chain that completed it. The kernel part writes it while the record's lock set is held. */
struct ebpfMonAsyncStat {
    __u64 since; /* begin of the one under way; 0: none is, or not known */
    __u64 idle;  /* when it was last found completed */
    __u64 count; /* the sum of hist */
    __u64 last;  /* ns */
    __u64 sum;
    __u64 max;
    __u64 timeouts; /* of count: it ended with the alarm status TIMEOUT */
    struct ebpfMonRecent recent;
    __u32 hist[EBPFMON_BUCKETS];
};

/* Map "released": when a lock set was last released (__u64, ns). */
struct ebpfMonLockKey {
    __u64 lockSet;
    __u64 tgid;
};

/* One lock set that a thread holds, or waits for. */
struct ebpfMonHeld {
    __u64 lockSet;
    __u64 root;  /* argument of the outermost dbScanLock */
    __u64 begin; /* when it was asked for */
    __u32 depth; /* dbScanLock calls that are not yet undone */
    __u32 handOvers; /* as in struct ebpfMonChain */
    __u64 sp;    /* stack pointer at the entry of scanList, which has gone to this record; 0: dbScanLock was called */
    __u64 got;   /* when the lock was there; 0: not known */
    __u32 turn;  /* ebpfMonTargetConf.turn then; 0: a pass of which the chains are not timed. It has no root, and any lock */
    __u32 pad;
};

/* What a periodic scan thread keeps of its period. A scan pass is all that it does in one period. */
struct ebpfMonScan {
    __u64 period;    /* nominal, by the thread's name; 0: it is no periodic scan thread */
    __u64 begin;     /* of the pass under way, or of the last */
    __u64 end;       /* of its last chain so far */
    __u64 first;     /* root of its first chain */
    __u64 root;      /* … and of its longest */
    __u64 longest;   /* … and how long that took, with what it waited for the lock */
    __u64 passes;    /* complete: the next has begun */
    __u64 sum;       /* of their periods, from begin to begin */
    __u64 max;
    __u64 busy;      /* sum of what they took */
    __u64 late;      /* periods of more than 1.5 of the nominal one */
    __u64 topRoot;   /* root of the longest chain in the last complete pass of which all chains were timed */
    __u64 lateTopRoot; /* … in the last pass that was late; 0: not all were timed */
    __u64 least;     /* ns that such a pass took, with no chain that was nearly slow; 0: none is known */
    __u32 timed;     /* all chains of the pass under way are timed so far */
    __u32 partial;   /* of the pass under way the begin was not seen: its period is not known */
};

/* What waits in queues of an IOC: the three priorities of callbacks (callback.h), and scanOnce. */
#define EBPFMON_QUEUE_ONCE 3
#define EBPFMON_QUEUES     4

/* Map "queues", by tgid. */
struct ebpfMonQueues {
    struct {
        __u64 count, sum; /* entries taken out, and the ns that they had waited */
        struct ebpfMonRecent wait;
    } q[EBPFMON_QUEUES];
};

/* The head of an element of map "threads", by thread id. The thread writes it while it is read. */
struct ebpfMonThread {
    __u32 tgid;
    __u32 heldCount; /* may be above EBPFMON_NESTED: held has the first ones */
    __u32 named;     /* its name was looked at */
    __u32 isOnce;    /* it is scanOnce's */
    __u64 busySince; /* it took out a callback then, and is at it still; 0: it waits for one, or serves no callbacks */
    struct ebpfMonHeld held[EBPFMON_NESTED];
    struct ebpfMonScan scan;
    __u64 holds, holdSum;      /* lock sets released, and ns that they were held */
    struct ebpfMonRecent hold; /* … by root */
};

/* The registers of a thread by which a caller's frame can be found, on x86-64. */
struct ebpfMonTaskRegs {
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
};

/* Map "hits", by tgid, for each CPU. */
struct ebpfMonHits {
    __u64 n[EBPFMON_HIT_KINDS];
};

/* Bucket of a latency: four to the octave. Bucket 0 holds all below 2^EBPFMON_OCTAVE0 ns. */
static inline __u32 ebpfMonBucket(__u64 ns)
{
    __u32 e, b;

    if (ns < (1ull << EBPFMON_OCTAVE0))
        return 0;
    e = ebpfMonLog2(ns);
    b = (e - EBPFMON_OCTAVE0) * 4 + ((ns >> (e - 2)) & 3) + 1;
    return b < EBPFMON_BUCKETS ? b : EBPFMON_BUCKETS - 1;
}

/* Both parts see these structs in shared memory, or pass them by address: both compilers must lay them out alike. */
_Static_assert(sizeof(struct ebpfMonTargetConf) == 112, "ebpfMonTargetConf");
_Static_assert(sizeof(struct ebpfMonRecKey) == 16 && sizeof(struct ebpfMonFieldKey) == 16 &&
               sizeof(struct ebpfMonLockKey) == 16 && sizeof(struct ebpfMonListKey) == 16, "keys have no holes");
_Static_assert(sizeof(struct ebpfMonRecConf) == 24 && __builtin_offsetof(struct ebpfMonRecConf, len) == 4,
               "ebpfMonRecConf: first and len are written in one store");
_Static_assert(sizeof(struct ebpfMonClosurePair) == 8, "an array map rounds its elements up to 8 bytes");
_Static_assert(sizeof(struct ebpfMonRecState) == 96, "ebpfMonRecState");
_Static_assert(sizeof(struct ebpfMonRootStat) == 64 + 4 * EBPFMON_BUCKETS, "ebpfMonRootStat");
_Static_assert(sizeof(struct ebpfMonAsyncStat) == 56 + 40 + 4 * EBPFMON_BUCKETS, "ebpfMonAsyncStat");
_Static_assert(sizeof(struct ebpfMonThread) == 424, "ebpfMonThread");
_Static_assert(sizeof(struct ebpfMonQueues) == EBPFMON_QUEUES * 56, "ebpfMonQueues");
_Static_assert(EBPFMON_SLOT_BITS + 6 + 1 == 32 && EBPFMON_STRETCH_MAX == (1 << 6) - 1, "an entry has 32 bits");
_Static_assert((EBPFMON_NESTED & (EBPFMON_NESTED - 1)) == 0, "EBPFMON_NESTED - 1 is a mask");

#endif
