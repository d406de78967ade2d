/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables (BPF maps) that the kernel part and the user part share: keys, values, sizes. maps.bpf.h declares the
 * maps. The room probe/ reads and writes them; it uses the names and structs of this header.
 */
#ifndef EBPFMON_TABLE_H
#define EBPFMON_TABLE_H

#include "ebpfMonEvent.h"
#include "ebpfMonLog2.h"

/* Numbers of elements of tables with a fixed size. ebpfMonConfigure sets the sizes of the others: those by slot, the
 * closures, the roots and the event ring. */
#define EBPFMON_TARGETS_MAX   1024  /* of the maps targets, hits, queues */
#define EBPFMON_SHARES        1024  /* a power of two */
#define EBPFMON_SHARE_TIMES   4     /* of an IOC: struct ebpfMonShare */
#define EBPFMON_SHARE_CHAINS  2     /* … for what only tells of its chains */
#define EBPFMON_THREADS_MAX   8192
#define EBPFMON_RELEASED_MAX  16384
#define EBPFMON_QUEUED_MAX    8192
#define EBPFMON_KEPT_MAX      4096
#define EBPFMON_ARRAYS_MAX    (64 * EBPFMON_TARGETS_MAX) /* the types of Base have 47 such fields */
#define EBPFMON_TARGET_WORDS  1024  /* a power of two */
#define EBPFMON_PROBES        (32 * EBPFMON_TARGETS_MAX) /* a power of two; programs that are attached to an IOC */
#define EBPFMON_OWNERS_MAX    (32768 + EBPFMON_ENDED_MAX)
#define EBPFMON_ENDED_SHARES  16   /* a power of two; the first one is root's, the others of all other users */
#define EBPFMON_ENDED_SHARE   1024 /* connections that have ended, of each */
#define EBPFMON_ENDED_MAX     (EBPFMON_ENDED_SHARES * EBPFMON_ENDED_SHARE)
#define EBPFMON_EARLIER_MAX   4096
#define EBPFMON_CONNECTS_MAX  4096
#define EBPFMON_SERVED_MAX    16384
#define EBPFMON_CERTIFICATES_MAX 2048
#define EBPFMON_NETNS_MANY    0xffffffff /* map "clientNetns": several namespaces had this connection */
#define EBPFMON_CAUSES_MAX    8192
#define EBPFMON_NOTIFIES_MAX  8192
#define EBPFMON_LISTS_MAX     16384
#define EBPFMON_PLAIN_MAX     1024

/* What the program ebpfmon_stack_trial returns: on which stack it ran. */
#define EBPFMON_STACK_THREAD 1 /* on that of its thread */
#define EBPFMON_STACK_OTHER  2 /* on another one, which threads of a CPU share */

/* --- tables that the user part writes -------------------------------------------------------------------------- */

/* Map "targets", by process id (tgid). Offsets in structs of the IOC's EPICS Base, in bytes. */
struct ebpfMonTargetConf {
    __u64 asActive;  /* address of the IOC's variable asActive; 0: there is none */
    __u64 slowNs;    /* ns; a chain that takes so long is kept whole; 0: none is */
    __u64 queuesSince; /* monotonic ns; since then all queues are watched. Older entries may have been taken out
                        * unseen */
    __u32 iocId;
    __u32 sample;    /* level trace: one chain in so many is kept */
    __u16 level;     /* enum ebpfMonKernelLevel */
    /* members of dbCommon; the offsets are from the IOC's own dbFldDes */
    __u16 time, pact, ppn, lset, disp, sevr, stat, spvt, phas, proc, tse;
    /* rsrv/server.h: struct client, struct channel_in_use */
    __u16 clAddr, clUser, clHost, clRecvBuf, clRecvStk, clRecvCnt;
    __u16 ciuClient, ciuDbch, ciuAs;
    __u16 asAccess;  /* asLib.h: struct asgClient.access */
    __u16 ppnChan, ppnUsr; /* dbNotify.h: struct processNotify */
    __u16 parallel;  /* nonzero: several threads take callbacks out of one queue */
    /* what differs between releases of Base: ioc/baseLayout.h */
    __u8 dbfGap;
    __u8 chanAddr;   /* 0: this Base has a DBADDR where others have a dbChannel */
    __u8 linkOwner, linkType, linkValue, linkPvname, linkPvlMask; /* link.h: struct link */
    __u8 ringHead;
    __u8 hasThreadNames, onceHasLink;
    __u8 isScanPutSeen; /* nonzero while passes are watched: each put that may move a record is seen */
    __u8 endsOtherwise; /* nonzero: scanList() has another end, which no probe sees */
    __u8 isPutLockSeen; /* nonzero: the entry of dbPutField() tells that it requests the lock of the record */
    __u16 hits;      /* the place of the IOC in the map "hits" */
    __u16 serving;   /* nonzero: it is seen which client a thread of pvxs begins to serve (ebpfmon_serve). A new number
                      * each time that this begins */
    __u16 mutexOsd, mutexId; /* offsets in epicsMutexParm: of the POSIX mutex; if this is 0, mutexId is the offset of
                              * the mutex's address. Both 0: not known */
    __u64 putsTaken; /* value of ebpfMonPassNotes.putsBegun when the user part read the scan lists */
    __u64 sweepsSince; /* monotonic ns; threads that took their locks before that have not been seen */
    __u32 sweeps;     /* nonzero: passes are watched instead of chains. A new number each time that this begins */
    __u32 zero;       /* always 0; see struct ebpfMonRecConf */
    __u64 breakpoints; /* address of the IOC's number of lock sets with breakpoints; 0: not known */
    __u32 turn;       /* chains of scan lists are timed in turns: a new number for each turn, never 0 */
    __u32 untimed;    /* nonzero: they are not timed now */
};

/*
 * The share of an IOC in the event ring: bytes that were sent, and bytes that were read. Both only grow. An IOC may
 * have EBPFMON_SHARE_TIMES as much as is free, not more. So one IOC that floods the ring takes four fifths of it, two
 * take four ninths each, and there is room for the others (dynamic thresholds: Choudhury and Hahne, IEEE/ACM
 * Transactions on Networking 6, 130). Its chains may have EBPFMON_SHARE_CHAINS as much, two thirds, so that they leave
 * room for its puts: a put that is lost may be one to a link, and then chains are not known until all links were read.
 */
struct ebpfMonShare {
    __u64 sent; /* written by the kernel part */
    __u64 read; /* written by the user part */
};

/* The element of an IOC in "shares". IOCs with the same low bits in their ids have one element. */
static inline __u32 ebpfMonShareOf(__u32 iocId)
{
    return iocId & (EBPFMON_SHARES - 1);
}

/* The bytes that an event takes in the ring, with its header (kernel/bpf/ringbuf.c). */
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

/* Map "arrays", by the address of a dbFldDes: where this array field has its elements and their number. */
struct ebpfMonFieldKey {
    __u64 pfldDes;
    __u64 tgid;
};

struct ebpfMonArrayConf {
    __u16 ptr;   /* offset of the record's pointer to the elements */
    __u16 count; /* offset of the record's 32-bit number of elements in use */
};

/* values of ebpfMonRecState.noted: the record is processing asynchronously */
#define EBPFMON_NOTED_BUSY  1 /* it is not known who began: it began before the probes, or there were too many at a
                               * time */
#define EBPFMON_NOTED_CAUSE 2 /* the map "causes" tells who began */

/* values of ebpfMonRecState.early: a sweep counted the record while another thread may have been processing it */
#define EBPFMON_EARLY_PERHAPS 1 /* it had set its time stamp, and may become asynchronous */
#define EBPFMON_EARLY_SURE    2 /* it became asynchronous: its completion is counted already */

/* values of ebpfMonRecConf.flags */
#define EBPFMON_REC_NOTIME   1 /* the time stamp does not show if the record processed: always look at its whole
                                * closure */
#define EBPFMON_REC_UNTRACED 2 /* level trace: the filter selects no record of its closure */
#define EBPFMON_REC_SINGLE   4 /* stretches are about to change: look at each record of its closure */

/*
 * A snapshot reads TIME and PACT of a record in one read, because a read of user memory costs as much as the rest of
 * the look. So PACT must be in the EBPFMON_TIME_WINDOW bytes before TIME. For a chain that is kept, SEVR, STAT, TIME
 * and mostly VAL of each record are read in one read, so they must be within EBPFMON_RECORD_SPAN bytes. The catalogue
 * checks both.
 */
#define EBPFMON_TIME_WINDOW 88
#define EBPFMON_RECORD_SPAN 512

/* Elements of a block of a table that grows. Blocks are mapped one behind the other, so a block of each table must have
 * whole pages, up to 64 KiB each (aarch64). */
#define EBPFMON_BLOCK 32768
#define EBPFMON_ROOT_BLOCK 1024 /* the same for "roots", whose elements are large */

/* Map "recConf", by slot. It is mapped into the user part, which writes it. */
struct ebpfMonRecConf {
    __u32 first;  /* closure[first … first+len-1] are the records of its closure, with the record itself */
    __u32 len;    /* 0: the record is not watched */
    __u16 valOff;
    __u8  valSize;
    __u8  flags;  /* EBPFMON_REC_… */
    __u32 zero;   /* always 0, and the verifier must not know it: it would unroll a loop that begins at a known
                   * number */
    __u32 groupFirst, groupLen; /* of the first record of a group: closure[groupFirst …] are the records of the group
                                 * that scan lists process */
};

/*
 * Map "closure". An element has two entries, because an array map rounds its elements up to 8 bytes, and the user part
 * sees them as they are in memory: closure[i] is entry[i % 2] of element i / 2.
 *
 * An entry has a slot. Its high bits tell how many of the next entries belong to the same stretch. In a stretch, each
 * record is processed only by the forward link of the record before it. If the last one processed, all before it have
 * processed, so one look is enough. The bank tells which of two counters counts these passes. It changes with the
 * closures, so that each pass counts for the stretch in which it was seen.
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
 * Map "recState", by slot. It is mapped into the user part. To look at a record, a program reads only this and the
 * record. Who writes which member, and under which lock: documentation/develop/contract.md.
 */
struct ebpfMonRecState {
    __u64 addr;    /* address of the record; 0: no record has this slot */
    __u64 time;    /* the last time stamp that was seen, or a later one from before the record processed again */
    __u64 count;   /* processings that snapshots saw one by one */
    __u64 pass[2]; /* chains that ran from here to the end of the stretch, by bank. Each is one processing of each
                    * record from this one to the last but one */
    __u64 stamp;   /* when the chain ended that processed it last */
    __u64 passStamp; /* when a chain ended that ran from here to the end of the stretch. See ebpfMonEnteredAt */
    __u32 root;    /* number of its element of "roots"; 0: it has none, so it was no root so far */
    __u8  seen;    /* nonzero once "time" is valid */
    __u8  wasBusy; /* nonzero: it was seen while it processed asynchronously */
    __u8  noted;   /* EBPFMON_NOTED_… */
    __u8  unsure;  /* nonzero: two passes may process it, and only one is counted. The user part clears this */
    __u32 last;    /* slot of the last record of its stretch: if that one processed, this one has, too. Its own slot:
                    * it is in no stretch, or the last one */
    __u32 group;   /* slot of the first record of its group: all records that links connect */
    __u32 inside;  /* of the first record of a group: EBPFMON_INSIDE_… */
    __u8  early;   /* EBPFMON_EARLY_… */
    __u8  pending; /* nonzero: it has begun asynchronously and not completed */
    __u8  watch;   /* EBPFMON_WATCH_…; the user part writes it */
    __u8  unlocked; /* nonzero: it completed while nobody held its lock set (EBPFMON_WATCH_LOCK) */
    __u64 trapped; /* processings that a trap counted, while that probe is attached */
    __u64 entered; /* calls of dbProcess(), while the reference probe is attached */
    __u64 before;  /* "time" before the record was counted last at the release of several lock sets */
    __u32 trapSeen; /* the low half of "trapped" when it was counted last (EBPFMON_WATCH_STAMPS) */
    __u32 strange; /* … and how often it had a new time stamp, and had not completed since then */
};

/* When a thread entered the group with this first record. It lies in the place of passStamp, for no chain has a stretch
 * while passes are watched. No union: clang takes a store in one for a change of anything, and reads all again. */
static inline __u64 *ebpfMonEnteredAt(struct ebpfMonRecState *head)
{
    return &head->passStamp;
}

/* ebpfMonRecState.watch: what the trap at the completion of a record is needed for */
#define EBPFMON_WATCH_LOCK   1 /* it may complete without its lock set: then what it makes process is not counted by
                                * snapshots */
#define EBPFMON_WATCH_STAMPS 2 /* its device support may set the time stamp without processing it: it has processed if
                                * the trap saw it complete */

/* ebpfMonRecState.inside: number of threads in the group. Such a thread may process records of the group without a scan
 * list … */
#define EBPFMON_INSIDE_COUNT   0x7fff
#define EBPFMON_INSIDE_SKIPPED 0x8000  /* … and a sweep has left out records because of them: the last thread that
                                        * leaves looks at the group */
#define EBPFMON_INSIDE_LEFT    0x10000 /* each thread that leaves adds this */

/* Map "lists", by the mutex of a scan list: closure[first … first+len-1] are the records that it processes. */
struct ebpfMonListKey {
    __u64 mutex;
    __u64 tgid;
};

struct ebpfMonList {
    __u32 first, len;
    __u32 isWhole;  /* nonzero: the last pass that began did so when all probes of sweeps were attached and there was no
                     * breakpoint, and it goes through these records. The kernel part writes this */
    __u32 pad;
    __u64 begin; /* of its last pass; ns. The kernel part writes it */
};

/* Map "plainPrograms": programs that are no IOCs; the kernel part does not send their starts. Map "found", by tgid:
 * processes that are IOCs; the kernel part sends every start of a program in them. The values have no meaning. */

/* Map "passNotes", by tgid, while passes are watched. The kernel part writes it. All numbers only grow. */
struct ebpfMonPassNotes {
    __u64 missed; /* a sweep may have missed something */
    __u64 unsure; /* how often ebpfMonRecState.unsure was set */
    __u64 putsBegun, putsDone; /* puts that may move a record to another scan list (scanPut.bpf.c): seen at their begin;
                                * and those that are over for sure */
    __u64 stuck;  /* a thread did not leave a group, or left it at a place without a probe */
    __u64 slow;   /* passes with untimed chains, one of which may have taken ebpfMonTargetConf.slowNs … */
    __u64 slowItself; /* … of these, passes that were so slow even without the time that they waited for a CPU */
};

/*
 * Map "roots", by a number from 1. A record in a scan list gets it from the user part, another one when it is a root
 * for the first time (roots.bpf.c). The user part has the map in its memory, and clears an element when its IOC is not
 * watched any more. Map "freeRoots" has the free numbers.
 */
struct ebpfMonRootStat {
    __u64 owner;  /* slot of the record, plus 1; 0: the element is free */
    __u64 chains; /* chains, timed or not */
    __u64 count;  /* chains that were timed: the sum of hist */
    __u64 last;   /* ns with the lock set held; also sum, max. waitSum, waitMax: ns of lock wait */
    __u64 sum;
    __u64 max;
    __u64 waitSum;
    __u64 waitMax;
    __u32 hist[EBPFMON_BUCKETS];
    __u64 pad[8]; /* so that a block has whole pages */
};

#define EBPFMON_ALARM_TIMEOUT 10 /* epicsAlarmTimeout (alarm.h) */

/* The greatest value of the last seconds: in the present window of time and in the one before. */
struct ebpfMonRecent {
    __u64 window;  /* number of the present window: time >> EBPFMON_WINDOW_BITS */
    __u64 max, maxBefore;
    __u64 who, whoBefore; /* the record or callback with the greatest value */
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

/* Map "asyncs", by slot: the asynchronous processings of a record, from the begin of the chain that set PACT to the end
 * of the chain that completed it. The kernel part writes it while the record's lock set is held. */
struct ebpfMonAsyncStat {
    __u64 since; /* begin of the present one; 0: there is none, or it is not known */
    __u64 idle;  /* when the record was last seen completed */
    __u64 count; /* the sum of hist */
    __u64 last;  /* ns */
    __u64 sum;
    __u64 max;
    __u64 timeouts; /* of these, processings that ended with the alarm status TIMEOUT */
    struct ebpfMonRecent recent;
    __u32 hist[EBPFMON_BUCKETS];
};

/* Map "released": when a lock set was released last (__u64, monotonic ns). */
struct ebpfMonLockKey {
    __u64 lockSet;
    __u64 tgid;
};

#define EBPFMON_PASS_STACK 24 /* words below the entry of scanList(), in which dbProcess() has saved the address of the
                               * record (passRoot.bpf.c) */

/* A lock set that a thread holds, or for which it waits. */
struct ebpfMonHeld {
    __u64 lockSet; /* 0: not known; it is that of "root" */
    __u64 root;  /* argument of the outermost dbScanLock(): the root of the chain */
    __u64 begin; /* when the thread requested it */
    __u32 depth; /* calls of dbScanLock() that are not yet undone */
    __u32 handOvers; /* as in struct ebpfMonChain */
    __u64 sp;    /* stack pointer at the entry of scanList(), which has gone on to this record; 0: dbScanLock() was
                  * called */
    __u64 got;   /* when the thread had it; 0: not known */
    __u32 turn;  /* ebpfMonTargetConf.turn at that time; 0: a pass with chains that are not timed. Then root is
                  * not known */
    __u32 putSp; /* low half of the stack pointer at the entry of dbPutField(), which requested the lock set; 0: it
                  * was requested otherwise */
    __u32 isLast; /* nonzero: no record followed in the list of scanList() then */
    __u32 hasInner; /* nonzero: records processed while the lock was recursive (depth > 1). They were counted then, and
                     * are not among those of the chain */
};

/* What the kernel part knows of a periodic scan thread. A pass is all that the thread does in one period. */
struct ebpfMonScan {
    __u64 period;    /* ns; the nominal period, from the name of the thread; 0: it is no periodic scan thread */
    __u64 begin;     /* begin of the present pass, or of the last one */
    __u64 end;       /* end of its last chain so far */
    __u64 first;     /* root of its first chain */
    __u64 noted;     /* root of another one, if the pass takes long; 0: none */
    __u64 root;      /* root of its longest chain */
    __u64 longest;   /* ns that this chain took, with the lock wait */
    __u64 passes;    /* passes that are complete, because the next one has begun */
    __u64 sum;       /* ns of their periods, from begin to begin; also max */
    __u64 max;
    __u64 busy;      /* ns that these passes took, in all */
    __u64 late;      /* late periods: of more than 1.5 times the nominal one */
    __u64 topRoot;   /* root of the longest chain in the last complete pass with all chains timed */
    __u64 lateTopRoot; /* … in the last late pass; 0: not all of its chains were timed */
    __u64 least;     /* ns that a pass took without any chain that was nearly slow; 0: not known */
    __u32 timed;     /* nonzero: all chains of the present pass are timed so far */
    __u32 partial;   /* nonzero: the begin of the present pass was not seen, so its period is not known */
};

/* The queues of an IOC: callbacks of three priorities (callback.h), and scanOnce. */
#define EBPFMON_QUEUE_ONCE 3
#define EBPFMON_QUEUES     4

/* Map "queues", by tgid. */
struct ebpfMonQueues {
    struct {
        __u64 count, sum; /* entries that were taken out, and the ns that they had waited */
        struct ebpfMonRecent wait;
    } q[EBPFMON_QUEUES];
};

/* The first part of an element of map "threads", by thread id. The thread writes it while the user part reads it. */
struct ebpfMonThread {
    __u32 tgid;
    __u32 heldCount; /* lock sets that it holds; may be more than EBPFMON_NESTED: "held" has the first ones */
    __u32 named;     /* nonzero: its name was read */
    __u32 isOnce;    /* nonzero: it is the thread scanOnce */
    __u64 busySince; /* since then it is in a callback; 0: it waits for one, or serves no callbacks */
    struct ebpfMonHeld held[EBPFMON_NESTED];
    struct ebpfMonScan scan;
    __u64 holds, holdSum;      /* lock sets that it released, and the ns that it held them */
    struct ebpfMonRecent hold; /* … the longest, with its root */
};

/* Map "served", by struct ebpfMonPeer: what a watched IOC has received of a connection. */
struct ebpfMonServed {
    struct ebpfMonFirst first;
    __u32 upTo;  /* TCP sequence number after the last byte that a thread of the IOC got */
    __u32 isNew; /* nonzero: we saw how it got the first byte; else the connection is older than our look */
    __u64 endedAt; /* map "endedServed": monotonic ns when the server's socket was closed; packets that came later were
                    * for nobody */
    __u32 begun; /* pvxs: … after the last byte that was there when a thread began to serve it last */
    __u32 pad;
    char  user[EBPFMON_USER_MAX]; /* pvAccess: as access security of the IOC has the client; empty: not known */
};

/* Map "certificates", by struct ebpfMonPeer: whom a server on pvxs has proved by a certificate. Texts that are longer
 * are cut; pvxs keeps 62 characters of each. */
struct ebpfMonCertificate {
    char account[EBPFMON_HOST_MAX];   /* common name of the certificate */
    char authority[EBPFMON_HOST_MAX]; /* … and of the root certificate; empty: the server does not know it */
};

/* Maps "owners" and "endedOwners", by struct ebpfMonPeer with the namespace of the client's socket: a namespace has one
 * such connection at a time. */
struct ebpfMonOwned {
    struct ebpfMonOwner owner;
    __u32 isChosen; /* nonzero: "first" may be the choice of its owner, who can have seen another connection (TCP_REPAIR
                     * in tcp(7)): it proves nothing about a server in another namespace */
    struct ebpfMonFirst first; /* zeros: it is older than the monitor, which found it in sock_diag(7) */
    __u32 ended;    /* its number among the connections of its share that have ended; 0: it is open */
    __u32 upTo;     /* once endedAt is set: TCP sequence number behind the last byte that its server has received, by
                     * the server's socket if that was closed; else by the client's */
    __u64 endedAt;  /* monotonic ns when the first of its two sockets was closed; 0: none was */
};

/* Map "earlier": a connection that has ended, if a later one has the same ends. The maps by struct ebpfMonPeer then
 * tell of the later one, but a server may not have read yet what the earlier one had sent. */
struct ebpfMonEarlierKey {
    struct ebpfMonPeer  peer;  /* as in "owners"; of one in "endedServed", with the namespace of the server's socket */
    struct ebpfMonFirst first; /* which is known */
};

/* The registers of a thread that are needed to find its callers, on x86-64. */
struct ebpfMonTaskRegs {
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
};

#define EBPFMON_TASK_RETURNS 32

/* Follows ebpfMonTaskRegs, once for each function of the thread that has a return probe, the innermost first. */
struct ebpfMonTaskReturn {
    __u64 slot; /* the place on the stack of the return address, which the kernel has replaced by its own */
    __u64 to;   /* the original return address */
};

/* Map "hits", by ebpfMonTargetConf.hits, one value for each CPU. */
struct ebpfMonHits {
    __u64 n[EBPFMON_HIT_KINDS];
};

/* The bucket of a time: four buckets for each octave. Bucket 0 has all times below 2^EBPFMON_OCTAVE0 ns. */
static inline __u32 ebpfMonBucket(__u64 ns)
{
    __u32 e, b;

    if (ns < (1ull << EBPFMON_OCTAVE0))
        return 0;
    e = ebpfMonLog2(ns);
    b = (e - EBPFMON_OCTAVE0) * 4 + ((ns >> (e - 2)) & 3) + 1;
    return b < EBPFMON_BUCKETS ? b : EBPFMON_BUCKETS - 1;
}

/* Both parts see these structs in shared memory, or pass them by address. The compilers of both must give them the same
 * layout. */
_Static_assert(sizeof(struct ebpfMonOwned) == 56, "ebpfMonOwned");
_Static_assert(sizeof(struct ebpfMonEarlierKey) == sizeof(struct ebpfMonPeer) + 8, "the key has no hole");
_Static_assert(sizeof(struct ebpfMonTargetConf) == 144, "ebpfMonTargetConf");
_Static_assert(sizeof(struct ebpfMonRecKey) == 16 && sizeof(struct ebpfMonFieldKey) == 16 &&
               sizeof(struct ebpfMonLockKey) == 16 && sizeof(struct ebpfMonListKey) == 16, "keys have no holes");
_Static_assert(sizeof(struct ebpfMonRecConf) == 24 && __builtin_offsetof(struct ebpfMonRecConf, len) == 4,
               "ebpfMonRecConf: first and len are written in one store");
_Static_assert(sizeof(struct ebpfMonClosurePair) == 8, "an array map rounds its elements up to 8 bytes");
_Static_assert(8 * EBPFMON_BLOCK % 65536 == 0 && sizeof(struct ebpfMonRecConf) % 8 == 0 &&
                   sizeof(struct ebpfMonRecState) % 8 == 0 &&
                   sizeof(struct ebpfMonRootStat) * EBPFMON_ROOT_BLOCK % 65536 == 0,
               "a block has whole pages");
_Static_assert(sizeof(struct ebpfMonRecState) == 112, "ebpfMonRecState");
_Static_assert(sizeof(struct ebpfMonRootStat) == 128 + 4 * EBPFMON_BUCKETS, "ebpfMonRootStat");
_Static_assert(sizeof(struct ebpfMonAsyncStat) == 56 + 40 + 4 * EBPFMON_BUCKETS, "ebpfMonAsyncStat");
_Static_assert(sizeof(struct ebpfMonThread) == 464, "ebpfMonThread");
_Static_assert(sizeof(struct ebpfMonQueues) == EBPFMON_QUEUES * 56, "ebpfMonQueues");
_Static_assert(EBPFMON_SLOT_BITS + 6 + 1 == 32 && EBPFMON_STRETCH_MAX == (1 << 6) - 1, "an entry has 32 bits");
_Static_assert((EBPFMON_NESTED & (EBPFMON_NESTED - 1)) == 0, "EBPFMON_NESTED - 1 is a mask");

#endif
