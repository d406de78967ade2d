/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The plan of a query: the query as the kernel part sees it. Each running query has its own programs and tables
 * (query.bpf.c). The user part writes the plan before the programs are loaded, and the kernel freezes it. So the
 * verifier knows each number in the plan, and removes the code that the query does not need (bpf_map_direct_read,
 * kernel/bpf/verifier.c, since 5.5).
 */
#ifndef EBPFMON_QUERY_H
#define EBPFMON_QUERY_H

#include "ebpfMonEvent.h"
#include "ebpfMonLog2.h"

#define EBPFMON_QUERY_KEYS     4
#define EBPFMON_QUERY_TERMS    8  /* conditions */
#define EBPFMON_QUERY_STEPS    4  /* offsets on the way from an argument to a value */
#define EBPFMON_QUERY_ARGS     6  /* integer arguments of a function, or of a system call */
#define EBPFMON_QUERY_TEXT     40 /* bytes of a text with its NUL; longer ones are cut */
#define EBPFMON_QUERY_WORDS    (EBPFMON_QUERY_TEXT / 8)
#define EBPFMON_QUERY_KEY_SIZE (EBPFMON_QUERY_KEYS * EBPFMON_QUERY_TEXT)
#define EBPFMON_QUERY_BUCKETS  192
#define EBPFMON_QUERY_DEPTH    64   /* nested calls of one function that are kept for a thread; a power of two. Of
                                     * more the kernel tells no end: MAX_URETPROBE_DEPTH, include/linux/uprobes.h */
#define EBPFMON_QUERY_THREADS  2048 /* threads that can be in dbProcess() at a time */
#define EBPFMON_QUERY_WAITS    8192 /* threads of which it is known if they wait for a CPU */
#define EBPFMON_QUERY_SITES    1024 /* places of USDT probes, in all IOCs */
#define EBPFMON_QUERY_PAYERS   256  /* IOCs whose part of the cost is known, and one for all other processes */

/* The kinds of fields. */
enum ebpfMonQueryWhat {
    EBPFMON_QUERY_NOTHING,
    EBPFMON_QUERY_ARG,       /* an argument, or the value to which it leads */
    EBPFMON_QUERY_RETURN,    /* the return value of the function or the system call */
    EBPFMON_QUERY_DURATION,  /* ns */
    EBPFMON_QUERY_IOC,       /* iocId */
    EBPFMON_QUERY_THREAD,    /* the name of the thread */
    EBPFMON_QUERY_ROOT,      /* the root of the thread's chain: iocId and address; address 0: there is none */
    EBPFMON_QUERY_IN_HAND,   /* the record that the thread processes: as ROOT */
    EBPFMON_QUERY_SYSCALL,   /* the number of the system call */
    EBPFMON_QUERY_CPU,
    EBPFMON_QUERY_PREEMPTED, /* 1: the thread was preempted; 0: it was woken */
    EBPFMON_QUERY_BEFORE,    /* the name of the thread that had the CPU before */
    EBPFMON_QUERY_PUT,       /* the put during which the event is: iocId, record, dbFldDes; record 0: there is none */
    EBPFMON_QUERY_AUTHOR,    /* who made this put: struct ebpfMonQueryWho */
    EBPFMON_QUERY_CLIENT,    /* the client that the thread serves: struct ebpfMonQueryWho */
    EBPFMON_QUERY_FUNCTION,  /* the place of the probe: iocId and address */
    EBPFMON_QUERY_PID,       /* id of the process */
    EBPFMON_QUERY_TID,       /* id of the thread */
    EBPFMON_QUERY_FILE,      /* the file or socket of a system call's first argument: struct ebpfMonQueryFile */
    EBPFMON_QUERY_SITE       /* the function from which the event comes: 0 here, the user part finds it in the stack */
};

enum ebpfMonQueryWhoKind { EBPFMON_QUERY_NOBODY, EBPFMON_QUERY_BY_CA, EBPFMON_QUERY_BY_PEER, EBPFMON_QUERY_BY_THREAD };

/* A client or a thread, as a part of a key. It has the size of a text, and is compared as one. */
struct ebpfMonQueryWho {
    __u32 kind;     /* enum ebpfMonQueryWhoKind */
    union {
        char user[16];  /* BY_CA: as the client claims; it may be cut */
        char comm[16];  /* BY_THREAD: name of the IOC's thread */
        struct { __u32 addr; __u16 port, pad; } peer; /* BY_PEER: as in struct ebpfMonPeer */
    };
    char host[20];  /* BY_CA; BY_PEER: addr6 */
};

enum ebpfMonQueryFileKind {
    EBPFMON_QUERY_IS_NOTHING,
    EBPFMON_QUERY_IS_FILE,
    EBPFMON_QUERY_IS_INET,
    EBPFMON_QUERY_IS_SOCKET
};

/* A file or a socket, as a part of a key. It has the size of a text. */
struct ebpfMonQueryFile {
    __u32 kind;  /* enum ebpfMonQueryFileKind */
    __u32 tgid;  /* of a file: the process that has it open, whose list of files has its path */
    union {
        struct { __u64 inode; char name[24]; } file; /* the last part of its path; it may be cut */
        struct {
            __u32 addr[4];
            __u16 family, port; /* port: of the peer, in network byte order; 0: it has no peer */
            __u16 ownPort;      /* 0: not needed */
            __u16 pad[5];
        } peer;
    };
};

#define EBPFMON_QUERY_SYSCALLS 512 /* system calls with smaller numbers than this may have a descriptor; a power of
                                    * two */

/* The type of an argument, or of the value to which it leads. */
enum ebpfMonQueryType {
    EBPFMON_QUERY_U8, EBPFMON_QUERY_U16, EBPFMON_QUERY_U32, EBPFMON_QUERY_U64,
    EBPFMON_QUERY_S8, EBPFMON_QUERY_S16, EBPFMON_QUERY_S32, EBPFMON_QUERY_S64,
    EBPFMON_QUERY_F32, EBPFMON_QUERY_F64, /* see ebpfMonQueryForm */
    EBPFMON_QUERY_CHARS,     /* text */
    EBPFMON_QUERY_RECORD,    /* the address of a record */
    EBPFMON_QUERY_SOCKET,    /* argument of a tracepoint: struct sock */
    EBPFMON_QUERY_LOCK,      /* the address of a mutex */
    EBPFMON_QUERY_CA_CLIENT  /* the address of a client of the CA server; read as struct ebpfMonQueryWho */
};

/* What becomes of a double, because eBPF cannot calculate with it. */
enum ebpfMonQueryForm {
    EBPFMON_QUERY_BITS,  /* in a key: its bits */
    EBPFMON_QUERY_ORDER_OF, /* in a condition: a signed number in the same order */
    EBPFMON_QUERY_FIXED  /* as a value: a multiple of 2^-EBPFMON_QUERY_POINT, rounded to 0; if it is too large, the
                          * greatest such number */
};

#define EBPFMON_QUERY_POINT 20

/*
 * One field. An argument with steps leads to memory: each step adds its offset to the pointer. The last step then reads
 * the value there; each other step reads the next pointer.
 */
struct ebpfMonQueryField {
    __u8  what;  /* enum ebpfMonQueryWhat */
    __u8  arg;   /* number of the argument, from 0 */
    __u8  type;  /* enum ebpfMonQueryType */
    __u8  steps;
    __u8  size;  /* bytes of its value: 8, 16 (names of threads, records), 24 (puts) or EBPFMON_QUERY_TEXT */
    __u8  at;    /* keys: byte at which it begins in the key */
    __u8  form;  /* doubles: enum ebpfMonQueryForm */
    __u8  pad;
    __s32 offset[EBPFMON_QUERY_STEPS];
};

enum ebpfMonQueryCompare {
    EBPFMON_QUERY_EQUAL, EBPFMON_QUERY_UNEQUAL, EBPFMON_QUERY_LESS, EBPFMON_QUERY_LESS_EQUAL, EBPFMON_QUERY_MORE,
    EBPFMON_QUERY_MORE_EQUAL,
    EBPFMON_QUERY_TEXT_EQUAL, EBPFMON_QUERY_TEXT_UNEQUAL /* compares the bits that "mask" has; so a prefix can be
                                                          * compared, too */
};

/* A condition. At least one condition of each clause must be true, and all clauses. The conditions of a clause stand
 * together, those first that are known at the begin of a call. */
struct ebpfMonQueryTerm {
    struct ebpfMonQueryField field;
    __u8  compare;  /* enum ebpfMonQueryCompare */
    __u8  clause;
    __u8  isSigned;
    __u8  isLast;   /* nonzero: the last one of its clause */
    __u8  pad[4];
    __u64 number;
    __u64 text[EBPFMON_QUERY_WORDS], mask[EBPFMON_QUERY_WORDS];
};

enum ebpfMonQueryHist { EBPFMON_QUERY_NO_HIST, EBPFMON_QUERY_LOG2, EBPFMON_QUERY_LINEAR };

struct ebpfMonQueryPlan {
    struct ebpfMonQueryField key[EBPFMON_QUERY_KEYS];
    struct ebpfMonQueryTerm  term[EBPFMON_QUERY_TERMS];
    struct ebpfMonQueryField value; /* EBPFMON_QUERY_NOTHING: the query only counts events */
    __u32 keys, terms;
    __u32 hist;     /* enum ebpfMonQueryHist */
    __u32 withIdle; /* nonzero: events of no thread count, too: of a tracepoint on the whole host */
    __s64 from, step; /* linear: bucket 0 has the values below "from"; each other bucket is "step" wide */
    __u32 steps;    /* linear: number of these other buckets; the last bucket has all values above them */
    __u32 sample;   /* the query looks at one event in so many; 1: at each */
    __u32 hostWide; /* nonzero: threads of all processes count, not only those of IOCs */
    __u32 args;     /* the arguments that the query needs, a bit each; of system calls, tracepoints and USDT probes */
    __u32 keySize;  /* bytes */
    __u32 depth;    /* nested calls that can be measured at a time; a power of two */
    __u32 stride;   /* bytes of one such call in "inCalls" */
    __u32 sends;    /* enum ebpfMonQuerySends */
    __u32 perPut;   /* nonzero: each put has a cell of its own. The last 8 bytes of the key are the put's number; events
                     * of no put do not count */
    __u32 lateOrigin; /* nonzero: put and author are known at the end of a call, and not at its begin */
    __u32 kernelStacks; /* nonzero: a stack that is sent has functions of the kernel, too */
    __u32 pad;
    __u64 takesFile[EBPFMON_QUERY_SYSCALLS / 64]; /* system calls with a descriptor as first argument, a bit each */
};

/* What the programs send of each event into the ring "sent". */
enum ebpfMonQuerySends { EBPFMON_QUERY_SENDS_NOTHING, EBPFMON_QUERY_SENDS_EVENTS, EBPFMON_QUERY_SENDS_STACKS };

#define EBPFMON_QUERY_REGS   21   /* words of struct pt_regs of x86-64 */
#define EBPFMON_QUERY_KERNEL 32   /* functions of the kernel in a stack */
#define EBPFMON_QUERY_STACK  8192 /* bytes of the thread's own stack, from its stack pointer on */
#define EBPFMON_QUERY_RETURNS 64  /* functions of a stack that have a return probe */
#define EBPFMON_QUERY_CHUNK  512  /* bytes of the stack that are read at once */

/* An event in the ring. Without stacks it ends before "regs". */
struct ebpfMonQueryEvent {
    __u64 at;     /* monotonic ns; the end of what is measured */
    __s64 value;
    __u32 tgid, tid, cpu, iocId;
    char  comm[EBPFMON_COMM_MAX];
    __u64 key[EBPFMON_QUERY_KEY_SIZE / 8];
    __u64 regs[EBPFMON_QUERY_REGS]; /* registers with which the thread entered the kernel */
    __u32 kernelCount, stackBytes;
    __u64 kernel[EBPFMON_QUERY_KERNEL]; /* addresses in the kernel; the innermost first */
    __u64 returns; /* number of return addresses that return probes have replaced. "ret" has where they are, and what
                    * they were */
    struct ebpfMonQueryReturn {
        __u64 slot, to;
    } ret[EBPFMON_QUERY_RETURNS];
    __u8  stack[EBPFMON_QUERY_STACK];
};

/* Map "cells", by key, one value for each CPU. Without a histogram in the plan, or with a cell for each put, a cell
 * ends before "hist". A new cell is all zeros. */
struct ebpfMonQueryCell {
    __u64 count;
    __u64 sum;    /* of signed values, modulo 2^64 */
    __u64 high;   /* greatest value so far, as EBPFMON_QUERY_ORDER(value); 0: none yet */
    __u64 low;    /* complement of the least value so far, as EBPFMON_QUERY_ORDER(value); 0: none yet */
    __s64 last;
    __u64 lastAt; /* monotonic ns */
    __u64 hist[EBPFMON_QUERY_BUCKETS];
};

/* Makes a signed number an unsigned one in the same order, and back. */
#define EBPFMON_QUERY_ORDER(value) ((__u64)(value) ^ 1ull << 63)

/* Map "chosen", by process: an IOC about which the query asks. */
struct ebpfMonQueryChosen {
    __u32 iocId;
    __u32 payer; /* number of its element of "counts" */
};

/* Map "counts", for each CPU: one element for each IOC that pays for the query. Element 0: all other processes. */
struct ebpfMonQueryCounts {
    __u64 runs;    /* runs of its programs */
    __u64 ns;      /* ns that these runs took; one in 16 is timed, and counts 16 times */
    __u64 passed;  /* events that met all conditions */
    __u64 full;    /* of these, events for which "cells" had no room */
    __u64 unsent;  /* of these, events for which "sent" had no room */
    __u64 faults;  /* fields that could not be read; their events are left out */
    __u64 lost;    /* calls, and threads that wait or process, for which a table had no room */
    __u64 records; /* runs of the two programs at dbProcess(); not in "runs" */
};

/*
 * Map "inCalls", by thread id: the calls of the thread that are being measured, the outermost first. After this head
 * there are plan.depth places, each with a struct ebpfMonQueryCall and as much of its "key" as this query has.
 */
struct ebpfMonQueryInCalls {
    __u32 depth, tgid;
};

struct ebpfMonQueryCall {
    __u64 sp;    /* stack pointer at its begin */
    __u64 begin;
    __u32 met;   /* clauses that are true so far, a bit each */
    __u32 pad;
    __s64 value; /* the value, if it was known at the begin */
    __u64 key[EBPFMON_QUERY_KEY_SIZE / 8];
};

/* Map "waits", by thread id, until the thread ends. */
struct ebpfMonQueryWait {
    __u64 begin; /* 0: it does not wait */
    __u32 iocId;
    __u16 payer;
    __u16 isPreempted; /* nonzero: the thread was preempted; 0: it was woken */
    __u32 left;  /* how often the thread had left a CPU by the kernel's own counters, when we saw it last; 0: we did
                  * not */
    __u32 got;   /* how often we saw it get a CPU since then */
};

/*
 * Map "inHand", by thread id: the calls of dbProcess() in which the thread is, the outermost first. A chain can have
 * more calls than those of which the kernel tells the end. Then "below" is the stack pointer of the first call without
 * a place, and until that call returns the record is not known.
 */
struct ebpfMonQueryInHand {
    __u32 depth, tgid;
    __u64 below;
    struct {
        __u64 sp, record;
    } at[EBPFMON_QUERY_DEPTH];
};

enum ebpfMonQueryOperandKind {
    EBPFMON_QUERY_NO_OPERAND,
    EBPFMON_QUERY_CONSTANT,
    EBPFMON_QUERY_REGISTER,
    EBPFMON_QUERY_MEMORY
};

/* Where a USDT probe has an argument, at one of its places. */
struct ebpfMonQueryOperand {
    __u8  kind;        /* enum ebpfMonQueryOperandKind */
    __u8  size;        /* bytes: 1, 2, 4 or 8 */
    __u8  isSigned;
    __u8  base, index; /* number of a word of struct pt_regs; EBPFMON_QUERY_REGS or more: none */
    __u8  shift;       /* bits by which the index is shifted */
    __u8  pad[2];
    __s64 number;      /* the constant, or the number that is added to the address */
};

/* Map "sites": the places of USDT probes. At each place the arguments are somewhere else. */
struct ebpfMonQuerySiteKey {
    __u64 ip;
    __u32 tgid, pad;
};

struct ebpfMonQuerySite {
    __u64 first; /* address of the first place of this probe: the key FUNCTION is the same for all its places */
    struct ebpfMonQueryOperand arg[EBPFMON_QUERY_ARGS];
};

/* Returns the bits of the double with the value of a float. A float that is not normal becomes 0. */
static inline __u64 ebpfMonQueryWidenFloat(__u32 bits)
{
    __u64 sign = (__u64)(bits >> 31) << 63, exponent = bits >> 23 & 0xff, rest = bits & 0x7fffff;

    if (!exponent)
        return sign;
    return sign | (exponent == 0xff ? 0x7ffull : exponent + 1023 - 127) << 52 | rest << 29;
}

/* EBPFMON_QUERY_ORDER_OF of a double. NaN is greater than all numbers; with a sign it is less than all. */
static inline __s64 ebpfMonQueryDoubleOrder(__u64 bits)
{
    if (!(bits << 1)) /* -0 is 0 */
        return 0;
    return bits >> 63 ? (__s64)(bits ^ 0x7fffffffffffffffull) : (__s64)bits;
}

/* Nonzero: the double is no number. It has no form EBPFMON_QUERY_FIXED. */
static inline int ebpfMonQueryDoubleIsNan(__u64 bits)
{
    return bits << 1 > 0xffe0000000000000ull;
}

/* EBPFMON_QUERY_FIXED of a double. */
static inline __s64 ebpfMonQueryDoubleFixed(__u64 bits)
{
    __u64 exponent = bits >> 52 & 0x7ff, n = (bits & 0xfffffffffffffull) | 1ull << 52;
    __s64 up = (__s64)exponent - 1023 - 52 + EBPFMON_QUERY_POINT; /* n must be shifted by so many bits */

    if (up < -52 || !exponent)
        n = 0;
    else if (up < 0)
        n >>= -up & 63;
    else if (up < 10)
        n <<= up & 63;
    else
        n = 1ull << 62;
    return bits >> 63 ? -(__s64)n : (__s64)n;
}

/* The bucket of a value: four buckets for each octave; each value up to 7 has its own. */
static inline __u32 ebpfMonQueryBucket(__s64 value)
{
    __u64 v = value < 0 ? 0 : (__u64)value;
    __u32 e, b;

    if (value < 4)
        return (__u32)v;
    e = ebpfMonLog2(v);
    b = (e - 1) * 4 + (((__u64)value >> (e - 2)) & 3);
    return b < EBPFMON_QUERY_BUCKETS ? b : EBPFMON_QUERY_BUCKETS - 1;
}

/* The smallest value of a bucket. */
static inline double ebpfMonQueryBucketEdge(__u32 bucket)
{
    return bucket < 4 ? bucket : (double)((4ull + bucket % 4) << (bucket / 4 - 1));
}

_Static_assert(sizeof(struct ebpfMonQueryEvent) == 48 + EBPFMON_QUERY_KEY_SIZE + 8 * EBPFMON_QUERY_REGS + 8 +
               8 * EBPFMON_QUERY_KERNEL + 8 + 16 * EBPFMON_QUERY_RETURNS + EBPFMON_QUERY_STACK, "ebpfMonQueryEvent");
_Static_assert(sizeof(struct ebpfMonQueryWho) == EBPFMON_QUERY_TEXT, "ebpfMonQueryWho");
_Static_assert(sizeof(struct ebpfMonQueryField) == 24, "ebpfMonQueryField");
_Static_assert(sizeof(struct ebpfMonQueryTerm) == 24 + 16 + 16 * EBPFMON_QUERY_WORDS, "ebpfMonQueryTerm");
_Static_assert(sizeof(struct ebpfMonQueryPlan) == 5 * 24 + 8 * 120 + 80 + EBPFMON_QUERY_SYSCALLS / 8,
               "ebpfMonQueryPlan");
_Static_assert(sizeof(struct ebpfMonQueryFile) == EBPFMON_QUERY_TEXT, "ebpfMonQueryFile");
_Static_assert(sizeof(struct ebpfMonQueryCell) == 48 + 8 * EBPFMON_QUERY_BUCKETS, "ebpfMonQueryCell");
_Static_assert(sizeof(struct ebpfMonQueryInHand) == 16 + 16 * EBPFMON_QUERY_DEPTH, "ebpfMonQueryInHand");
_Static_assert((EBPFMON_QUERY_DEPTH & (EBPFMON_QUERY_DEPTH - 1)) == 0, "EBPFMON_QUERY_DEPTH - 1 is a mask");
_Static_assert(sizeof(struct ebpfMonQuerySiteKey) == 16 &&
                   sizeof(struct ebpfMonQuerySite) == 8 + 16 * EBPFMON_QUERY_ARGS,
               "ebpfMonQuerySite");
_Static_assert(sizeof(struct ebpfMonQueryCounts) == 64, "ebpfMonQueryCounts");
_Static_assert(sizeof(struct ebpfMonQueryInCalls) == 8 && sizeof(struct ebpfMonQueryWait) == 24 &&
               sizeof(struct ebpfMonQueryCall) == 32 + EBPFMON_QUERY_KEY_SIZE, "ebpfMonQueryCall");

#endif
