/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The events that the kernel part sends to the user part on the ring. Both include this header; their tables stand in
 * ebpfMonTable.h.
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

/* As ebpfMonLevel of model/level.h; watch/governor.c asserts it. */
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
    EBPFMON_HIT_NS,     /* time that the programs took which take long: chains, puts, callbacks */
    EBPFMON_HIT_KINDS
};

enum ebpfMonEventKind {
    EBPFMON_EV_PUT = 1, /* struct ebpfMonPutEvent, its values after it */
    EBPFMON_EV_RESULT,  /* struct ebpfMonResultEvent */
    EBPFMON_EV_CHAIN,   /* struct ebpfMonChainEvent */
    EBPFMON_EV_EXEC,    /* struct ebpfMonExecEvent */
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

/* The file of a program, as the kernel knows it. */
struct ebpfMonProgram {
    __u64 inode;
    __u32 device; /* super_block.s_dev */
    __u32 pad;
};

/* A process runs another program. */
struct ebpfMonExecEvent {
    struct ebpfMonHead head;
    struct ebpfMonProgram program;
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
    EBPFMON_SEQ_RECEIVED, /* … of the byte after what was received last, by the call that began at seqFrom: the message
                             ends within that */
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
    struct ebpfMonSourceChain source;
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
    __u32 seqFrom;
    __u32 newLen;   /* bytes after the struct: first the old value, then the new one */
    __u32 oldLen;
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
    __u64 sourceBegin; /* EBPFMON_EV_CALINK: the chain that left "root" processing asynchronously; 0: none did. With */
    __u32 sourceTid;   /* sourceTid its identity. The chain "begin" may only be a step of that, and never be sent */
    struct ebpfMonWho who;
    char name[EBPFMON_CHANNEL_MAX]; /* EBPFMON_EV_CALINK: the PV that it leads to */
    __u32 put;      /* EBPFMON_EV_CAUSE: the low half of the put's id. That put's event may get lost */
    __u32 byMain;   /* the thread that began it is the process' first: the shell, or iocInit */
    __u32 kept;     /* map "causes": the chain "begin" was kept whole */
    __u64 putRecord, putField; /* map "causes": record and dbFldDes of the put in whose course it began; 0: in none */
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
#define EBPFMON_ASYNC 8 /* records that one chain leaves processing asynchronously, of which the event has a list */

/* A chain that is kept whole. Thread and "begin" are its identity. */
struct ebpfMonChain {
    struct ebpfMonHead head; /* ktime: the end */
    __u64 begin;    /* when the lock was asked for */
    __u64 wait;     /* ns of it spent waiting for the lock */
    __u64 causeBegin; /* the chain that left its root processing asynchronously; 0: none. It completes what that began */
    __u64 blocked;  /* ns that the thread slept, since "begin" */
    __u64 queueWait; /* ns that it was in a queue before: of callbacks, or of scanOnce */
    __u64 cpuWait;  /* ns that it could have run and had no CPU */
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
    __u32 chains;    /* EBPFMON_EV_HANDOVER_END: that came of it and were sent, or should have been */
    __u32 isPartial; /* EBPFMON_EV_HANDOVER_END: there may be more, of which it is not known that they came of it */
};

struct ebpfMonChainEvent {
    struct ebpfMonChain chain;
    struct ebpfMonChainRec rec[EBPFMON_CHUNK];
};

/* The event ring carries these structs as they are, so both compilers must lay them out alike. */
_Static_assert(sizeof(struct ebpfMonHead) == 24, "ebpfMonHead");
_Static_assert(sizeof(struct ebpfMonPeer) == 16, "ebpfMonPeer");
_Static_assert(sizeof(struct ebpfMonWho) == 164, "ebpfMonWho");
_Static_assert(sizeof(struct ebpfMonOwner) == 24, "ebpfMonOwner");
_Static_assert(sizeof(struct ebpfMonSourceChain) == 40, "ebpfMonSourceChain");
_Static_assert(sizeof(struct ebpfMonHandOver) == 184, "ebpfMonHandOver");
_Static_assert(sizeof(struct ebpfMonHandOverEvent) == 216, "ebpfMonHandOverEvent");
_Static_assert(sizeof(struct ebpfMonPutEvent) == 424, "ebpfMonPutEvent");
_Static_assert(sizeof(struct ebpfMonCauseEvent) == 352, "ebpfMonCauseEvent");
_Static_assert(sizeof(struct ebpfMonChain) == 176, "ebpfMonChain");
_Static_assert(sizeof(struct ebpfMonResultEvent) == 88, "ebpfMonResultEvent");
_Static_assert(sizeof(struct ebpfMonChainRec) == 32, "ebpfMonChainRec");
_Static_assert(sizeof(struct ebpfMonChainEvent) ==
               sizeof(struct ebpfMonChain) + EBPFMON_CHUNK * sizeof(struct ebpfMonChainRec), "ebpfMonChainEvent");

#endif
