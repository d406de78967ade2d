/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What the kernel half and the user half say to each other: the events on the ring, and the tables that
 * one side writes and the other reads. The only header that both chains include.
 *
 * All times are CLOCK_MONOTONIC nanoseconds, but for record time stamps, which are as the record has
 * them (epicsTimeStamp: seconds since 1990 in the low 32 bits, nanoseconds in the high 32).
 */
#ifndef EBPFMON_EVENT_H
#define EBPFMON_EVENT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EBPFMON_VAL_MAX   256 /* bytes of a value that an event carries */
#define EBPFMON_USER_MAX  40  /* claimed user name, with its terminator */
#define EBPFMON_HOST_MAX  64  /* claimed host name, with its terminator */
#define EBPFMON_COMM_MAX  16  /* TASK_COMM_LEN */
#define EBPFMON_CHANNEL_MAX 96 /* a channel's name as the client wrote it, with its terminator */
#define EBPFMON_AFTER_MAX 40  /* bytes of a value after the put */
#define EBPFMON_CALINK_SIZE 128 /* has the link's address and the time stamp of its last monitor, in whatever place */
#define EBPFMON_NESTED    4   /* lock sets that one thread can hold before we stop looking */
#define EBPFMON_BUCKETS   128 /* latency histogram: 32 octaves of 4 */
#define EBPFMON_OCTAVE0   8   /* first bucket: below 2^8 ns */
#define EBPFMON_CLOSURE_MAX 16384 /* records that one chain is searched for */
#define EBPFMON_CHUNK     96  /* records in one chain event */

/* Must match ebpfMonLevel.h of the model. */
enum ebpfMonKernelLevel {
    EBPFMON_OFF = 0,
    EBPFMON_PUTS = 1,
    EBPFMON_COUNTS = 2,
    EBPFMON_CHAINS = 3,
    EBPFMON_TRACE = 4
};

/* Why an event is missing: index into the map "lost". */
enum ebpfMonLost {
    EBPFMON_LOST_RING,    /* the ring was full */
    EBPFMON_LOST_THREADS, /* more threads than the thread table holds */
    EBPFMON_LOST_ROOTS,   /* more chain roots than the histogram table holds */
    EBPFMON_LOST_NESTED,  /* more lock sets held by one thread than EBPFMON_NESTED */
    EBPFMON_LOST_FAULT,   /* the target's memory was paged out, so a record could not be read */
    EBPFMON_LOST_KERNEL   /* number of the reasons above */
};

/* What was counted for the cost: index into the per-target counters. */
enum ebpfMonHit {
    EBPFMON_HIT_ENTRY,  /* traps at a function's entry */
    EBPFMON_HIT_RETURN, /* traps at a function's return */
    EBPFMON_HIT_WALKED, /* records looked at by snapshots */
    EBPFMON_HIT_KINDS
};

enum ebpfMonEventKind {
    EBPFMON_EV_PUT = 1, /* struct ebpfMonPutEvent, its values after it */
    EBPFMON_EV_RESULT,  /* struct ebpfMonResultEvent */
    EBPFMON_EV_CHAIN,   /* struct ebpfMonChainEvent */
    EBPFMON_EV_EXEC,    /* struct ebpfMonHead alone */
    EBPFMON_EV_EXIT,    /* struct ebpfMonHead alone */
    EBPFMON_EV_CAUSE,   /* struct ebpfMonCauseEvent: who began the asynchronous processing whose completion makes
                           the next put of this thread */
    EBPFMON_EV_CALINK,  /* struct ebpfMonCauseEvent: a record writes through a CA link */
    EBPFMON_EV_HANDOVER_BEGIN,   /* struct ebpfMonHandOverEvent: where the chain comes from that this thread reports next */
    EBPFMON_EV_HANDOVER_END     /* struct ebpfMonHandOverEvent: what a chain handed over is done, or will never be */
};

struct ebpfMonHead {
    __u32 kind; /* enum ebpfMonEventKind */
    __u32 tgid;
    __u32 tid;
    __u32 iocId; /* from ebpfMonTargetConf: tells two lives of one pid apart */
    __u64 ktime;
};

/* Where the write was seen. */
enum ebpfMonPutSite {
    EBPFMON_SITE_PUT,      /* dbPut: the result follows in an EBPFMON_EV_RESULT, if that is watched */
    EBPFMON_SITE_LINK,     /* dbPutField of a link field, which never reaches dbPut */
    EBPFMON_SITE_DISABLED, /* dbPutField or dbProcessNotify of a record with DISP set */
    EBPFMON_SITE_DENIED    /* rsrvCheckPut: refused by access security, or a field that nobody may write */
};

/* A TCP connection as the server sees it; addresses and ports in network byte order. */
struct ebpfMonPeer {
    __u32 addr;  /* the client's */
    __u32 saddr; /* the server's */
    __u16 port;
    __u16 sport;
    __u32 netns; /* network namespace (inode) for 127/8, else 0: only loopback addresses are ambiguous */
};

/* The process behind a local connection. */
struct ebpfMonOwner {
    __u32 pid; /* 0: not known, or not on this host */
    __u32 uid;
    char  comm[EBPFMON_COMM_MAX];
};

/* On whose behalf a thread of an IOC runs. */
struct ebpfMonWho {
    struct ebpfMonPeer peer; /* addr 0: no connection known */
    struct ebpfMonOwner owner;
    char user[EBPFMON_USER_MAX]; /* as the client claims */
    char host[EBPFMON_HOST_MAX];
    char comm[EBPFMON_COMM_MAX]; /* the thread's own name */
    __u8 isCA;                   /* it serves a CA circuit */
    __u8 pad[3];
};

/* What ebpfMonPutEvent.seq is. */
enum ebpfMonSeq {
    EBPFMON_SEQ_NONE,
    EBPFMON_SEQ_MESSAGE, /* TCP sequence number of the CA message */
    EBPFMON_SEQ_RECEIVED, /* … of the byte after what was received last: the message lies before it */
    EBPFMON_SEQ_SHARED   /* the same of a thread that serves several connections: it may be of another one */
};

/* The chain in which something was put into a queue: a callback, or a record for scanOnce. */
struct ebpfMonSourceChain {
    __u64 begin;    /* with tid its identity; 0: in none */
    __u64 root;     /* record that it began with */
    __u32 tid;
    __u32 isMain;   /* tid is the process' first thread */
    char  comm[EBPFMON_COMM_MAX]; /* the thread's name */
};

/* What a thread took out of a queue. */
struct ebpfMonHandOver {
    struct ebpfMonSourceChain by;
    __u64 delay;    /* ns that it was to wait before it came into the queue */
    __u64 isLink;   /* a CA link's monitor put it there, and "link" is valid */
    __u8  link[EBPFMON_CALINK_SIZE]; /* the beginning of its struct caLink (dbCaPvt.h) at that time */
};

struct ebpfMonPutEvent {
    struct ebpfMonHead head;
    __u64 id;       /* pairs with the result: counts the puts of this thread */
    __u64 addr;     /* the DBADDR that it wrote through: tells links and channels apart */
    __u64 precord;
    __u64 pfldDes;
    __u64 pfield;
    __u64 root;     /* the record whose chain this thread is in, 0: none or not watched */
    __s64 nRequest; /* elements sent */
    __s64 nElements;/* elements the field can hold */
    __s32 oldCount; /* elements the array held before, -1: not an array */
    __s16 dbrType;
    __s16 fieldType;
    __s16 fieldSize;
    __u8  site;     /* enum ebpfMonPutSite */
    __u8  network;  /* the value sent is as the CA message has it, big-endian and of a CA type */
    __u16 linkType; /* EBPFMON_SITE_LINK: link.h's type and pvlMask of the link as it was */
    __u16 linkMask;
    __u8  seqKind;  /* enum ebpfMonSeq */
    __u8  locked;   /* the result comes when the lock is released, the record's processing included */
    __u32 seq;
    __u32 newLen;   /* bytes after the struct: first the old value, then the new one */
    __u32 oldLen;
    __u32 pad;
    struct ebpfMonWho who;
    struct ebpfMonSourceChain source;         /* who handed over the chain "root" */
    char channel[EBPFMON_CHANNEL_MAX]; /* empty: no client's; cut ones fill it without a terminator's room */
};

struct ebpfMonResultEvent {
    struct ebpfMonHead head;
    __u64 id;
    __s64 status; /* what dbPut returned */
    __u32 afterLen; /* bytes of "after": what the field holds now; 0: an array, or not readable */
    __u8  after[EBPFMON_AFTER_MAX];
    __u32 pad;
};

struct ebpfMonCauseEvent {
    struct ebpfMonHead head;
    __u64 root;     /* record that the chain began with, 0: not known */
    __u64 begin;    /* of the chain that this is a part of, as in struct ebpfMonChainEvent; 0: not known. With head.tid
                       its identity */
    __u64 link;     /* EBPFMON_EV_CALINK: address of the link */
    struct ebpfMonWho who;
    char name[EBPFMON_CHANNEL_MAX]; /* EBPFMON_EV_CALINK: the PV that it leads to */
    __u32 put;      /* EBPFMON_EV_CAUSE: the low half of the put's id. That put's event may get lost */
    __u32 byMain;   /* the thread that began it is the process' first: the shell, or iocInit */
    __u32 kept;     /* map "causes": the chain "begin" was kept whole */
};

struct ebpfMonChainRec {
    __u32 slot;
    __u16 sevr;
    __u16 stat;
    __u64 time; /* the record's own time stamp */
    __u8  val[16];
};

#define EBPFMON_CHAIN_BUSY 1 /* its root processes asynchronously still */
#define EBPFMON_CHAIN_MAIN 2 /* by the first thread of the process: the shell, or iocInit */
#define EBPFMON_CHAIN_MORE 4 /* it left more records processing asynchronously than "async" holds */
#define EBPFMON_CHAIN_LATE 8 /* it was under way when we began to look; "begin" is its end */
#define EBPFMON_CHAIN_EARLY 16 /* the chain that handed it over is under way still */
#define EBPFMON_NO_SYSCALL (-1)
#define EBPFMON_ASYNC 8 /* records that one chain leaves processing asynchronously, and that are told of */

/* A chain that is kept whole. Thread and "begin" are its identity. */
struct ebpfMonChain {
    struct ebpfMonHead head; /* ktime: the end */
    __u64 begin;    /* when the lock was asked for */
    __u64 wait;     /* ns of it spent waiting for the lock */
    __u64 causeBegin; /* the chain that left its root processing asynchronously; 0: none. It completes what that began */
    __u64 blocked;  /* ns that the thread slept, since "begin" */
    __u64 handed;   /* ns that it was in a queue before: of callbacks, or of scanOnce */
    __u64 queued;   /* ns that it could have run and had no CPU */
    __u64 longest;  /* ns of its longest sleep … */
    __s32 syscall;  /* … in this system call; EBPFMON_NO_SYSCALL: in none, or not watched */
    __u32 causeTid;
    __u32 flags;    /* EBPFMON_CHAIN_… */
    __u32 cpu;      /* at its end */
    __u32 outer;    /* 1 + slot of the record whose chain the thread was in already; 0: in none, or not watched */
    __u32 async[EBPFMON_ASYNC]; /* 1 + slot of records that it left processing asynchronously; 0: none */
    __u32 handOvers;     /* what it handed over: callbacks, and records for scanOnce */
    char  comm[EBPFMON_COMM_MAX]; /* the thread's name */
    __u32 rootSlot;
    __u32 total;    /* records processed by this chain */
    __u32 part;     /* number of this event among the chain's, from 0 */
    __u32 last;     /* nonzero: the chain is complete with this event */
    __u32 count;    /* entries in this event's rec */
};

struct ebpfMonHandOverEvent {
    struct ebpfMonHead head;
    struct ebpfMonHandOver what;
};

struct ebpfMonChainEvent {
    struct ebpfMonChain chain;
    struct ebpfMonChainRec rec[EBPFMON_CHUNK];
};

/* --- tables that the user half writes ------------------------------------------------------------ */

/* Map "targets", by tgid. Offsets into structs of the target's EPICS Base, in bytes. */
struct ebpfMonTargetConf {
    __u64 asActive;  /* address of the target's asActive, 0: none */
    __u64 slowNs;    /* chains that take this long are kept whole, 0: none */
    __u64 queuesSince; /* what was put into a queue before may have been taken out, and put in again, unseen */
    __u32 iocId;
    __u32 sample;    /* level trace: keep one chain in this many */
    __u16 level;     /* enum ebpfMonKernelLevel */
    /* dbCommon, from the target's own dbFldDes */
    __u16 time, pact, ppn, lset, disp, sevr, stat;
    /* rsrv/server.h: struct client, struct channel_in_use */
    __u16 clAddr, clUser, clHost, clRecvBuf, clRecvStk, clRecvCnt;
    __u16 ciuClient, ciuDbch, ciuAs;
    __u16 asAccess;  /* asLib.h: struct asgClient.access */
    __u16 ppnChan, ppnUsr; /* dbNotify.h: struct processNotify */
    __u16 parallel;  /* several threads take callbacks out of one queue */
};

/* Map "recIndex": which slot a record has. */
struct ebpfMonRecKey {
    __u32 tgid;
    __u32 pad;
    __u64 precord;
};

/* Map "arrays": where an array field keeps its elements and their number. By tgid and dbFldDes address. */
struct ebpfMonArrayConf {
    __u16 ptr;   /* offset of the pointer to the elements */
    __u16 count; /* offset of the 32-bit number of elements in use */
};

#define EBPFMON_NOTED_BUSY  1 /* who began that is not known: before we looked, or one of too many */
#define EBPFMON_NOTED_CAUSE 2 /* map "causes" has who */

#define EBPFMON_REC_UNWANTED 2 /* level trace: the filter wants no record of its chain */
#define EBPFMON_REC_NOTIME 1 /* its time stamp does not tell that it processed: always walk its chain */

/* Map "recConf", by slot; mapped into the user half. */
struct ebpfMonRecConf {
    __u32 first;  /* its closure: closure[first … first+len-1], itself included */
    __u32 len;    /* 0: not watched */
    __u16 valOff;
    __u8  valSize;
    __u8  flags;  /* EBPFMON_REC_… */
    __u32 zero;   /* 0, and the verifier does not know it: it would unroll a loop that begins at a number it knows */
};

/*
 * Map "closure": two entries to an element, because an array map rounds its elements up to 8 bytes and the
 * user half sees it mapped as it lies in memory: closure[i] is element i / 2, entry[i % 2].
 *
 * An entry is a slot and, in the high bits, how many of the following entries belong to the same stretch:
 * records each of which is processed by the forward link of the one before and by nothing else. If the last
 * one processed then so did all before it, and one look tells of them all. The bank says which of the two
 * counters of such passes is in use: it changes with the closures, so that every pass counts for the
 * stretch that it was seen in.
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

/* --- tables that the kernel half writes ---------------------------------------------------------- */

/* Map "recState", by slot; mapped into the user half. Written with the record's lock set held, but for its
 * address, which the user half writes first: a look at a record touches this and the record alone. */
struct ebpfMonRecState {
    __u64 addr;    /* of the record; 0: none has this slot */
    __u64 time;    /* the time stamp last seen, or a later one from before the record processed again */
    __u64 count;   /* processings seen by snapshots, one by one */
    __u64 pass[2]; /* chains seen to run from here to the end of its stretch, by bank: one processing of each
                      record from this one to the last but one */
    __u64 stamp;   /* end of the chain that processed it last */
    __u64 passStamp; /* … that ran from here to the end of its stretch */
    __u32 pending; /* asynchronous: begun and not yet completed */
    __u16 seen;    /* nonzero once "time" is valid */
    __u16 noted;   /* EBPFMON_NOTED_…: it is processing asynchronously */
    __u32 last;    /* slot of the last record of its stretch, by the user half: when that was seen to process,
                      so had this one. Its own slot: in no stretch, or the last */
    __u32 pad;
    __u64 trapped; /* processings seen by the trap, while it is attached */
    __u64 entered; /* calls of dbProcess, while the reference trap is attached */
};

/* Map "roots", by slot. */
struct ebpfMonRootStat {
    __u64 chains; /* all */
    __u64 count;  /* those that were timed: the sum of hist */
    __u64 last;   /* ns with the lock held */
    __u64 sum;
    __u64 max;
    __u64 waitSum;
    __u64 waitMax;
    __u32 hist[EBPFMON_BUCKETS];
};

/* One lock set that a thread holds, or waits for. */
struct ebpfMonHeld {
    __u64 lockSet;
    __u64 root;  /* argument of the outermost dbScanLock */
    __u64 begin; /* when it was asked for */
    __u32 depth; /* dbScanLock calls not yet undone */
    __u32 handOvers;  /* as in struct ebpfMonChain */
};

/* What a periodic scan thread keeps of its period. A pass is all that it does in one period. */
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
    __u64 topRoot;     /* root of the longest chain in the last complete pass */
    __u64 lateTopRoot; /* … in the last pass that was late */
};

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

/* What waits in queues of an IOC: the three priorities of callbacks (callback.h), and scanOnce. */
#define EBPFMON_QUEUE_ONCE 3
#define EBPFMON_QUEUES     4

/* Map "queues", by tgid. */
struct ebpfMonQueues {
    struct {
        __u64 count, sum; /* that were taken out, and ns that they had waited */
        struct ebpfMonRecent wait;
    } q[EBPFMON_QUEUES];
};

/* The head of an element of map "threads", by tid. The thread writes it while it is read. */
struct ebpfMonThread {
    __u32 tgid;
    __u32 heldCount; /* may be above EBPFMON_NESTED: held has the first ones */
    __u32 named;     /* its name was looked at */
    __u32 isOnce;    /* it is scanOnce's */
    __u64 busySince; /* it took out a callback then, and is at it still; 0: it waits for one, or is no callbacks' thread */
    struct ebpfMonHeld held[EBPFMON_NESTED];
    struct ebpfMonScan scan;
    __u64 holds, holdSum;      /* lock sets released, and ns that they were held */
    struct ebpfMonRecent hold; /* … by root */
};

/* The registers of a thread that a caller's frame can be found by, on x86-64. */
struct ebpfMonTaskRegs {
    __u64 ip, sp, bp, bx, r12, r13, r14, r15;
};

/* Map "hits", by tgid. */
struct ebpfMonHits {
    __u64 n[EBPFMON_HIT_KINDS];
};

/* Bucket of a latency: four to the octave. Bucket 0 holds all below 2^EBPFMON_OCTAVE0 ns. The logarithm
 * is by halving: BPF has no instruction for it, and clang 14 does not end on __builtin_clzll. */
static inline __u32 ebpfMonBucket(__u64 ns)
{
    __u32 e = 0, b;
    __u64 v = ns;

    if (ns < (1ull << EBPFMON_OCTAVE0))
        return 0;
    if (v >> 32) { e += 32; v >>= 32; }
    if (v >> 16) { e += 16; v >>= 16; }
    if (v >> 8) { e += 8; v >>= 8; }
    if (v >> 4) { e += 4; v >>= 4; }
    if (v >> 2) { e += 2; v >>= 2; }
    if (v >> 1) e += 1;
    b = (e - EBPFMON_OCTAVE0) * 4 + ((ns >> (e - 2)) & 3) + 1;
    return b < EBPFMON_BUCKETS ? b : EBPFMON_BUCKETS - 1;
}

#endif /* EBPFMON_EVENT_H */
