/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The events that the kernel part sends to the user part through the ring. Both parts include this header. The tables
 * that they share are in ebpfMonTable.h.
 *
 * All times are ns of CLOCK_MONOTONIC. Only time stamps of records are an epicsTimeStamp, as in the record: seconds
 * since 1990 in the low 32 bits, nanoseconds in the high 32 bits.
 */
#ifndef EBPFMON_EVENT_H
#define EBPFMON_EVENT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EBPFMON_VAL_MAX   256 /* bytes of a value in an event, at most */
#define EBPFMON_USER_MAX  40  /* bytes of a claimed user name, with its terminator */
#define EBPFMON_HOST_MAX  64  /* bytes of a claimed host name, with its terminator */
#define EBPFMON_COMM_MAX  16  /* TASK_COMM_LEN */
#define EBPFMON_CHANNEL_MAX 96 /* bytes of a channel's name as the client wrote it, with its terminator */
#define EBPFMON_AFTER_MAX 40  /* bytes of the value that a field has after the put */
#define EBPFMON_CALINK_SIZE 128 /* bytes at the beginning of struct caLink: they contain the link's address and the
                                 * time stamp of its last monitor, in every release */
#define EBPFMON_NESTED    4   /* lock sets that a thread can hold at a time; of more, no chain is measured */
#define EBPFMON_BUCKETS   128 /* buckets of a histogram: 32 octaves with 4 buckets each */
#define EBPFMON_OCTAVE0   8   /* the first bucket is below 2^8 ns */
#define EBPFMON_CLOSURE_MAX 16384 /* records at which one snapshot looks, at most */
#define EBPFMON_CHUNK     96  /* records in one event of a chain */

/* The same as ebpfMonLevel of model/filter.h; watch/governor.c asserts it. */
enum ebpfMonKernelLevel {
    EBPFMON_OFF = 0,
    EBPFMON_PUTS = 1,
    EBPFMON_COUNTS = 2,
    EBPFMON_CHAINS = 3,
    EBPFMON_TRACE = 4
};

/* The reason why an event is missing: index into the map "lost". */
enum ebpfMonLost {
    EBPFMON_LOST_RING,    /* the ring was full */
    EBPFMON_LOST_THREADS, /* the table of threads was full */
    EBPFMON_LOST_ROOTS,   /* the table of roots was full */
    EBPFMON_LOST_NESTED,  /* a thread held more than EBPFMON_NESTED lock sets */
    EBPFMON_LOST_FAULT,   /* memory of the IOC was paged out, so a record could not be read */
    EBPFMON_LOST_KERNEL   /* number of the reasons above */
};

#define EBPFMON_COLD_WHOLE   1024     /* of one trap, at most */
#define EBPFMON_COLD_HALF_NS 10000000 /* ns; after so long without a trap a CPU is half as cold as it can be */

/* What is counted of the traps, most of it to calculate the cost: index into ebpfMonHits.n. */
enum ebpfMonHit {
    EBPFMON_HIT_ENTRY,  /* traps at entries of functions, and at calls */
    EBPFMON_HIT_RETURN, /* traps at returns of functions */
    EBPFMON_HIT_NS,     /* ns that those programs took which take long: at chains, puts and callbacks */
    EBPFMON_HIT_STRANGE, /* traps at dbScanUnlock whose argument is no record: no cost, but a sign of a wrong
                          * function */
    EBPFMON_HIT_COLD,   /* traps on a cold CPU: up to EBPFMON_COLD_WHOLE for each, by how long there was none */
    EBPFMON_HIT_KINDS
};

enum ebpfMonEventKind {
    EBPFMON_EV_PUT = 1, /* struct ebpfMonPutEvent, followed by the values */
    EBPFMON_EV_RESULT,  /* struct ebpfMonResultEvent */
    EBPFMON_EV_CHAIN,   /* struct ebpfMonChainEvent */
    EBPFMON_EV_EXEC,    /* struct ebpfMonExecEvent */
    EBPFMON_EV_EXIT,    /* struct ebpfMonExitEvent: the last thread of a process of map "found" ends */
    EBPFMON_EV_CAUSE,   /* struct ebpfMonCauseEvent: who began the asynchronous processing that this thread
                         * completes. Its next put is part of that */
    EBPFMON_EV_CALINK,  /* struct ebpfMonCauseEvent: a record writes through a CA link */
    EBPFMON_EV_HANDOVER_BEGIN,   /* struct ebpfMonHandOverEvent: the source chain of the chain that this thread sends
                                  * next */
    EBPFMON_EV_HANDOVER_END,    /* struct ebpfMonHandOverEvent: a hand-over is done, or will never be */
    EBPFMON_EV_LISTEN   /* only struct ebpfMonHead: a process of map "found" listens at one more TCP socket */
};

struct ebpfMonHead {
    __u32 kind; /* enum ebpfMonEventKind */
    __u32 tgid;
    __u32 tid;
    __u32 iocId; /* of ebpfMonTargetConf: tells two processes with the same pid apart */
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

#define EBPFMON_EXIT_OOM 0x10000 /* mark_oom_victim(), mm/oom_kill.c */

struct ebpfMonExitEvent {
    struct ebpfMonHead head;
    __u32 code; /* as for wait(2): the signal that ended it, 0x80 with a core dump; or its exit status << 8.
                 * With EBPFMON_EXIT_OOM: the kernel was out of memory, and chose this process to end */
    __u32 pad;
};

/* What was seen of a put, and where. */
enum ebpfMonPutKind {
    EBPFMON_PUT_VALUE,    /* dbPut(): the result follows in an EBPFMON_EV_RESULT, if the return is probed */
    EBPFMON_PUT_LINK,     /* dbPutField() of a link field, which never calls dbPut() */
    EBPFMON_PUT_DISABLED, /* dbPutField() or dbProcessNotify() of a record with DISP set */
    EBPFMON_PUT_DENIED    /* rsrvCheckPut(): refused by access security, or a field that nobody may write */
};

/* A TCP connection as the server sees it. Addresses and ports are in network byte order. An IPv6 address is in "addr6",
 * and "addr" has a number that is made of it (ebpfMonShortAddress) and tells nothing else. IPv4: "addr6" is 0. */
struct ebpfMonPeer {
    __u32 addr;  /* address of the client */
    __u32 saddr; /* address of the server */
    __u16 port;
    __u16 sport;
    __u32 netns; /* inode of a network namespace: that of the server's socket, or in which packets of the connection
                  * were seen, or (map "owners") that of the client's socket. Any user can make a namespace with the
                  * addresses of others. 0: not known */
    __u32 addr6[4];
    __u32 saddr6[4];
};

/* 127/8 and ::1: such a connection never leaves its namespace. */
static inline int ebpfMonIsLoopback(__u32 addr, const __u32 addr6[4])
{
    return *(const __u8 *)&addr == 127 ||
           (!addr6[0] && !addr6[1] && !addr6[2] && ((const __u8 *)addr6)[15] == 1 &&
            !(((const __u8 *)addr6)[12] | ((const __u8 *)addr6)[13] | ((const __u8 *)addr6)[14]));
}

static inline int ebpfMonIsIPv6(const __u32 addr6[4])
{
    return (addr6[0] | addr6[1] | addr6[2] | addr6[3]) != 0;
}

static inline int ebpfMonIsSameAddress(__u32 a, const __u32 a6[4], __u32 b, const __u32 b6[4])
{
    return a == b && a6[0] == b6[0] && a6[1] == b6[1] && a6[2] == b6[2] && a6[3] == b6[3];
}

/* The same with both ends exchanged. */
static inline struct ebpfMonPeer ebpfMonPeerSwap(const struct ebpfMonPeer *p)
{
    struct ebpfMonPeer swapped = *p;

    swapped.addr = p->saddr;
    swapped.saddr = p->addr;
    swapped.port = p->sport;
    swapped.sport = p->port;
    for (int i = 0; i < 4; i++) {
        swapped.addr6[i] = p->saddr6[i];
        swapped.saddr6[i] = p->addr6[i];
    }
    return swapped;
}

/* IPv6 addresses that stand for IPv4 ones: ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
static inline int ebpfMonIsMapped(const __u32 addr6[4])
{
    return !addr6[0] && !addr6[1] && !((const __u8 *)addr6)[8] && !((const __u8 *)addr6)[9] &&
           ((const __u8 *)addr6)[10] == 0xff && ((const __u8 *)addr6)[11] == 0xff;
}

/* A number of an IPv6 address for tables and ids: as an address it would be in 0/8, where no connection is. It is the
 * same on each host, of either byte order. Many addresses have one number (FNV-1a, folded to 24 bits). */
static inline __u32 ebpfMonShortAddress(const __u32 addr6[4])
{
    const __u8 *b = (const __u8 *)addr6;
    union {
        __u8  byte[4];
        __u32 addr;
    } made;
    __u32 h = 2166136261u;

    for (int i = 0; i < 16; i++)
        h = (h ^ b[i]) * 16777619u;
    h ^= h >> 24;
    made.byte[0] = 0;
    made.byte[1] = h >> 16 & 0xff;
    made.byte[2] = h >> 8 & 0xff;
    made.byte[3] = (h & 0xff) | 1; /* never 0, which is "not known" */
    return made.addr;
}

/* The sequence numbers with which the data of a connection begin: the client's, the server's. Both ends know both, and
 * nobody can choose those of the other end. So they show that two sockets are the ends of one connection. */
struct ebpfMonFirst {
    __u32 seq[2];   /* zeros: not known */
};

static inline int ebpfMonFirstIsSame(const struct ebpfMonFirst *a, const struct ebpfMonFirst *b)
{
    return a->seq[0] == b->seq[0] && a->seq[1] == b->seq[1] && (a->seq[0] || a->seq[1]);
}

#define EBPFMON_TICK_NS 10000000 /* of the start times in /proc: USER_HZ is 100 */

/* The process that opened a local connection. */
struct ebpfMonOwner {
    __u32 pid;   /* 0: the process is not known, or not on this host */
    __u32 uid;
    __u32 start; /* of the process, in ticks since boot: who holds the connection may live longer than who opened it,
                  * and then the pid may be another's; 0: not known */
    char  comm[EBPFMON_COMM_MAX];
};

/* For whom a thread of an IOC works. */
struct ebpfMonWho {
    struct ebpfMonPeer peer; /* its addr is 0: no connection is known */
    struct ebpfMonOwner owner;
    char user[EBPFMON_USER_MAX]; /* as the client claims; the next one, too */
    char host[EBPFMON_HOST_MAX];
    char comm[EBPFMON_COMM_MAX]; /* the name of the IOC's thread */
    __u8 isCA;                   /* nonzero: the thread serves a CA circuit */
    __u8 isShared;               /* nonzero: the thread receives from several connections, and "peer" is only the last:
                                  * it may work for another one */
    __u8 pad[2];
};

/* The meaning of ebpfMonPutEvent.seq. */
enum ebpfMonSeq {
    EBPFMON_SEQ_NONE,
    EBPFMON_SEQ_MESSAGE, /* the TCP sequence number of the CA message */
    EBPFMON_SEQ_RECEIVED, /* the TCP sequence number after the last byte of the thread's last receive, which began at
                           * seqFrom: the message ends in this range */
    EBPFMON_SEQ_SHARED   /* the same, but the thread serves several connections: the message may be of another one */
};

/* The source chain of a hand-over: in it, a callback or a record for scanOnce was put into a queue. */
struct ebpfMonSourceChain {
    __u64 begin;    /* identifies the chain, with "tid"; 0: there is none */
    __u64 root;     /* address of its root */
    __u32 tid;
    __u32 isMain;   /* nonzero: tid is the first thread of the process */
    char  comm[EBPFMON_COMM_MAX]; /* the thread's name */
};

/* What a thread took out of a queue. */
struct ebpfMonHandOver {
    struct ebpfMonSourceChain source;
    __u64 delay;    /* ns of delay that were requested before it entered the queue */
    __u64 cpLink;   /* address of the CP link (CA) that put it there; 0: none did, or it is not known */
    __u8  caLink[EBPFMON_CALINK_SIZE]; /* of a CP link: the first bytes of its struct caLink (dbCaPvt.h) at that time */
};

struct ebpfMonPutEvent {
    struct ebpfMonHead head;
    __u64 id;       /* number of this put of the thread; its result has the same */
    __u64 addr;     /* address of the DBADDR that was used: tells links and channels apart */
    __u64 precord;
    __u64 pfldDes;
    __u64 pfield;
    __u64 root;     /* root of the chain that this thread is in; 0: there is none, or it is not watched */
    __u64 begin;    /* begin of this chain, which identifies it, with head.tid; 0: there is none, or it is not known */
    __s64 nRequest; /* elements that were sent */
    __s64 nElements;/* elements that the field can hold */
    __s32 oldCount; /* elements that the array had before; -1: it is no array */
    __s16 dbrType;
    __s16 fieldType;
    __s16 fieldSize;
    __u8  putKind;  /* enum ebpfMonPutKind */
    __u8  network;  /* nonzero: the new value is as in the CA message: big-endian, of a CA type */
    __u16 linkType; /* EBPFMON_PUT_LINK: type and pvlMask (link.h) of the link before the put */
    __u16 linkMask;
    __u8  seqKind;  /* enum ebpfMonSeq */
    __u8  locked;   /* nonzero: the result comes when the thread releases the lock set, after the record has
                     * processed */
    __u32 seq;
    __u32 seqFrom;
    __u32 newLen;   /* bytes after the struct: first oldLen bytes of the old value, then newLen bytes of the new one */
    __u32 oldLen;
    struct ebpfMonWho who;
    struct ebpfMonSourceChain source;         /* source chain of the chain "root" */
    __u64 cpLink;   /* address of the CP link (CA) that made "root" process; 0: none did, or it is not known */
    char channel[EBPFMON_CHANNEL_MAX]; /* empty: no client made the put. A name that was cut fills it, with its
                                        * terminator */
};

struct ebpfMonResultEvent {
    struct ebpfMonHead head;
    __u64 id;
    __s64 status; /* the value that dbPut() returned */
    __u32 afterLen; /* bytes in "after", the value that the field has now; 0: an array, or it cannot be read */
    __u8  after[EBPFMON_AFTER_MAX];
    __u32 pad;
};

struct ebpfMonCauseEvent {
    struct ebpfMonHead head;
    __u64 root;     /* address of the root of the chain; 0: not known */
    __u64 begin;    /* begin of the chain, as in struct ebpfMonChainEvent; 0: not known. Identifies the chain, with
                     * head.tid */
    __u64 link;     /* EBPFMON_EV_CALINK: address of the link */
    __u64 cpLink;   /* as in struct ebpfMonPutEvent */
    __u64 sourceBegin; /* EBPFMON_EV_CALINK: the chain that left "root" processing asynchronously; 0: there is none. */
    __u32 sourceTid;   /* Identifies it, with sourceBegin. The chain "begin" may be only a part of that one, and
                        * never be sent. EBPFMON_EV_CAUSE: thread of the chain "begin"; head.tid is that of the put */
    struct ebpfMonWho who;
    char name[EBPFMON_CHANNEL_MAX]; /* EBPFMON_EV_CALINK: the PV to which the link leads */
    __u32 put;      /* EBPFMON_EV_CAUSE: the low half of the put's id, because the event of that put may get lost */
    __u32 byMain;   /* nonzero: the first thread of the process began it: the shell, or iocInit */
    __u32 kept;     /* map "causes": nonzero: the chain "begin" was kept whole */
    __u64 putRecord, putField; /* map "causes": record and dbFldDes of the put during which it began; 0: there was
                                * none */
    __u64 putNumber; /* … thread id << 32 | its number (struct putInHand) */
};

struct ebpfMonChainRec {
    __u32 slot;
    __u16 sevr;
    __u16 stat;
    __u64 time; /* the record's time stamp */
    __u8  val[16];
};

#define EBPFMON_CHAIN_BUSY 1 /* the root still processes asynchronously */
#define EBPFMON_CHAIN_MAIN 2 /* the first thread of the process made it: the shell, or iocInit */
#define EBPFMON_CHAIN_MORE 4 /* it left more records processing asynchronously than "async" has places; or some of the
                              * records that it processed are missing, because a routine of a record made them process
                              * (by dbPutField() or the like) */
#define EBPFMON_CHAIN_LATE 8 /* it had begun before our probes were attached; "begin" is its end */
#define EBPFMON_CHAIN_EARLY 16 /* its source chain has not ended yet */
#define EBPFMON_NO_SYSCALL (-1)
#define EBPFMON_ASYNC 8 /* places for the records that one chain leaves processing asynchronously */

/* A chain that is kept whole. Thread and "begin" identify it. */
struct ebpfMonChain {
    struct ebpfMonHead head; /* ktime: the end of the chain */
    __u64 begin;    /* when the thread requested the lock set */
    __u64 wait;     /* ns that the thread waited for the lock set */
    __u64 causeBegin; /* begin of the chain that left the root processing asynchronously; this chain completes it. 0:
                       * there is none */
    __u64 blocked;  /* ns that the thread slept since "begin" */
    __u64 queueWait; /* ns that it waited in a queue before: of callbacks, or of scanOnce */
    __u64 cpuWait;  /* ns that the thread was ready to run and had no CPU */
    __u64 longest;  /* ns of its longest sleep … */
    __s32 syscall;  /* … which was in this system call; EBPFMON_NO_SYSCALL: in none, or not watched */
    __u32 causeTid;
    __u32 flags;    /* EBPFMON_CHAIN_… */
    __u32 cpu;      /* number of the CPU at the chain's end */
    __u32 outer;    /* 1 + slot of the root of the chain around this one; 0: there is none, or it is not watched */
    __u32 async[EBPFMON_ASYNC]; /* 1 + slot of each record that it left processing asynchronously; 0: none */
    __u32 handOvers;     /* number of its hand-overs: callbacks, and records for scanOnce */
    char  comm[EBPFMON_COMM_MAX]; /* the thread's name */
    __u32 rootSlot;
    __u32 total;    /* records that this chain processed */
    __u32 part;     /* number of this event of the chain, from 0 */
    __u32 last;     /* nonzero: this is the last event of the chain */
    __u32 count;    /* records in this event */
};

struct ebpfMonHandOverEvent {
    struct ebpfMonHead head;
    struct ebpfMonHandOver what;
    __u32 chains;    /* EBPFMON_EV_HANDOVER_END: number of chains to which the hand-over led, and that were sent or
                      * got lost */
    __u32 isPartial; /* EBPFMON_EV_HANDOVER_END: nonzero: there may be more such chains */
};

struct ebpfMonChainEvent {
    struct ebpfMonChain chain;
    struct ebpfMonChainRec rec[EBPFMON_CHUNK];
};

/* The compilers of both parts must give these structs the same layout. */
_Static_assert(sizeof(struct ebpfMonHead) == 24, "ebpfMonHead");
_Static_assert(sizeof(struct ebpfMonPeer) == 48, "ebpfMonPeer");
_Static_assert(sizeof(struct ebpfMonWho) == 200, "ebpfMonWho");
_Static_assert(sizeof(struct ebpfMonOwner) == 28, "ebpfMonOwner");
_Static_assert(sizeof(struct ebpfMonSourceChain) == 40, "ebpfMonSourceChain");
_Static_assert(sizeof(struct ebpfMonHandOver) == 184, "ebpfMonHandOver");
_Static_assert(sizeof(struct ebpfMonHandOverEvent) == 216, "ebpfMonHandOverEvent");
_Static_assert(sizeof(struct ebpfMonPutEvent) == 480, "ebpfMonPutEvent");
_Static_assert(sizeof(struct ebpfMonCauseEvent) == 400, "ebpfMonCauseEvent");
_Static_assert(sizeof(struct ebpfMonChain) == 176, "ebpfMonChain");
_Static_assert(sizeof(struct ebpfMonResultEvent) == 88, "ebpfMonResultEvent");
_Static_assert(sizeof(struct ebpfMonChainRec) == 32, "ebpfMonChainRec");
_Static_assert(sizeof(struct ebpfMonChainEvent) ==
               sizeof(struct ebpfMonChain) + EBPFMON_CHUNK * sizeof(struct ebpfMonChainRec), "ebpfMonChainEvent");

#endif
