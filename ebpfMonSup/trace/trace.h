/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace: the chains that belong together, from the first cause to the last effect. Event thread only. */
#ifndef EBPFMON_TRACE_H
#define EBPFMON_TRACE_H

#include <epicsTime.h>
#include <stdint.h>

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "put/finishedPut.h"
#include "watch/target.h"

/* --- sources of CP links ---
 *
 * Which chain caused a CP link to process its record. The monitor event that the link got has the time stamp of the
 * record that it watches; chains that were kept have the time stamps of their records. The two records can be in
 * different IOCs of this host. Event thread only. */

/* A CP link that processed its record. */
typedef struct {
    uint64_t at;     /* its address */
    uint8_t  start[EBPFMON_CALINK_SIZE]; /* of its struct caLink, as in struct ebpfMonHandOver */
    char     name[EBPFMON_NAME_SIZE + 8]; /* the record that it watches; empty: not read yet */
    uint32_t sourcePid; /* the watched IOC that has this record; 0: not known */
} ebpfMonCpLink;

typedef enum {
    ebpfMonCpLinkFound,
    ebpfMonCpLinkAwaited, /* the chain may not have ended yet, or a read is wanted */
    ebpfMonCpLinkUnknown  /* no IOC whose chains we see has the record, or the link cannot be read */
} ebpfMonCpLinkResult;

/* The chain that caused a CP link to process its record. */
typedef struct {
    ebpfMonChainId chain; /* iocId 0: not known */
    uint32_t place;       /* of the watched record among the chain's records, in the order of their time stamps */
    char     record[EBPFMON_NAME_SIZE]; /* the watched record */
    char     root[EBPFMON_NAME_SIZE];   /* the record that its chain began with */
    char     ioc[EBPFMON_NAME_SIZE];    /* its IOC; empty: the IOC of the link */
} ebpfMonCpLinkSource;

typedef struct ebpfMonCpLinkSources ebpfMonCpLinkSources;

ebpfMonCpLinkSources *ebpfMonCpLinkSourcesNew(ebpfMonTargets *targets); /* NULL without memory */
void ebpfMonCpLinkSourcesFree(ebpfMonCpLinkSources *sources); /* NULL does no harm */

/* A record of a kept chain has this time stamp (as struct ebpfMonChainRec has it). "root" and "index": the chain's
 * root and the record in the catalogue of the chain's IOC. */
void ebpfMonCpLinkSourcesAdd(ebpfMonCpLinkSources *sources, const ebpfMonChainId *chain, uint32_t root, uint32_t place,
                             uint32_t index, uint64_t stamp);

/* The chain that caused a CP link of record "root" of IOC "t". "link": with address and start; the rest becomes known
 * at the first call. Only then the memory of the IOC is read, by ebpfMonTargetsGetReads. Under ebpfMonTargetsLock. */
ebpfMonCpLinkResult ebpfMonCpLinkSourcesFind(const ebpfMonCpLinkSources *sources, ebpfMonTarget *t, uint32_t root,
                                             ebpfMonCpLink *link, ebpfMonCpLinkSource *source);

/* --- time stamps ---
 *
 * The time stamp of a record (dbCommon.time) as the kernel part reads it, as one number.
 */

/* ns since 1970, UTC. "stamp": seconds since 1990 in the low 32 bits, nanoseconds in the high ones (epicsTimeStamp). */
static inline int64_t ebpfMonStampToUnix(uint64_t stamp)
{
    return (int64_t)(((stamp & 0xffffffff) + POSIX_TIME_AT_EPICS_EPOCH) * 1000000000u + (stamp >> 32));
}

/* --- a chain ---
 *
 * One chain of a trace; users see it as a step. Event thread only.
 */

#define EBPFMON_CHAIN_RECORDS 2048 /* of one chain that are kept */

/* Records are given by their index in the catalogue. */
typedef struct ebpfMonTraceChain {
    struct ebpfMonTraceChain *next; /* of the same trace, in the order in which their events came */
    struct ebpfMonTraceChain *nextOfHash; /* traces.c sets it */
    struct ebpfMonTrace *trace; /* that it is a part of; NULL: not yet */
    struct ebpfMonChain chain;  /* rootSlot is an index; async and outer are 1 + index, 0: none */
    ebpfMonChainId source;      /* the chain that handed it over, as a callback or for scanOnce; iocId 0: none */
    uint32_t sourceRoot;        /* 1 + index of the root of that chain; 0: not known */
    uint64_t delay;             /* ns that the callback was to wait before it came into its queue */
    uint32_t count;
    struct ebpfMonChainRec rec[]; /* in the order of their time stamps; slot is an index */
} ebpfMonTraceChain;

ebpfMonChainId ebpfMonTraceChainGetId(const ebpfMonTraceChain *c);

/* The chain that began the root of "c", if "c" completes an asynchronous root; "begin" 0: it does not. */
ebpfMonChainId ebpfMonTraceChainGetBeginner(const ebpfMonTraceChain *c);

/* Copies a chain as the kernel part reports it, with slots; "rec" in any order. NULL without memory; free() ends it. */
ebpfMonTraceChain *ebpfMonTraceChainNew(const ebpfMonTarget *t, const struct ebpfMonChain *chain,
                                        const struct ebpfMonChainRec *rec, uint32_t count);

/* A hand-over led to the chain. */
void ebpfMonTraceChainSetSource(const ebpfMonTarget *t, ebpfMonTraceChain *c, const struct ebpfMonHandOver *from);

/* Nonzero: it completes a record that "source" left processing. */
int ebpfMonTraceChainCompletes(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source);

/* Nonzero: "source" handed it over. */
int ebpfMonTraceChainIsHandedOverBy(const ebpfMonTraceChain *c, const ebpfMonTraceChain *source);

/* --- a trace --- */

#define EBPFMON_TRACE_CHAINS 64 /* of one trace; each may have been caused by the one before */
#define EBPFMON_TRACE_ASYNC  32 /* records of one trace that process asynchronously at the same time */

typedef struct ebpfMonTrace {
    struct ebpfMonTrace *next, *before; /* traces.c: the open ones, the oldest first */
    uint32_t iocId;
    ebpfMonCatalogue *cat; /* held: the indexes of records are those of this catalogue */
    ebpfMonTraceChain *first, *last;
    unsigned chains;
    uint32_t records;      /* kept, in all chains */
    uint64_t end;          /* monotonic ns: when the last of its chains ended; not always that of "last" */
    int      isIncomplete; /* something that belongs to it is missing, or may be */
    unsigned unseen;       /* … values that it wrote through CA links, whose message was not seen … */
    int      lacksCause;   /* … the message of the put that caused it. Both are known when it is finished */
    int      lacksCpSource; /* … the chain whose record a CP link watches: from Base 7.0.10 on no function shows it */

    /* what it waits for */
    uint32_t async[EBPFMON_TRACE_ASYNC]; /* 1 + index of a record that processes asynchronously; 0: free */
    uint32_t handOvers;    /* hand-overs of its chains that are not done */
    unsigned linkWrites;   /* of its chains: each may go out as a message */
    int      awaitsSource; /* the chain that handed over its first chain has not come yet */
    int      awaitsPut;    /* the put "putId", made by the thread of the first chain, has not come yet */
    uint64_t putId;
    ebpfMonCpLink *cpLink; /* a CP link caused it, and the chain behind that is not known yet; else NULL */
    uint64_t causeSeen;    /* monotonic ns: the chain that caused it was under way, or missing for the first time; 0:
                            * never (traces.c) */

    /* its cause, and its id */
    ebpfMonCpLinkSource source; /* of a CP link; chain.iocId 0: none */
    ebpfMonPutSummary *put;     /* NULL: no put caused it */
    int      hasId;             /* "id" is chosen */
    uint8_t  id[16];            /* OpenTelemetry's trace id */
} ebpfMonTrace;

/* Holds the catalogue of the IOC. NULL without memory. */
ebpfMonTrace *ebpfMonTraceNew(const ebpfMonTarget *t);

/* Frees it with its chains. */
void ebpfMonTraceFree(ebpfMonTrace *trace);

/* The chain becomes the trace's own. */
void ebpfMonTraceAppend(ebpfMonTrace *trace, ebpfMonTraceChain *c);

/* "number": 1 + index of a record that one of its chains left processing; 0 does nothing. */
void ebpfMonTraceAddAsync(ebpfMonTrace *trace, uint32_t number);
void ebpfMonTraceRemoveAsync(ebpfMonTrace *trace, uint32_t number);
int ebpfMonTraceHasAsync(const ebpfMonTrace *trace);

/* The chain of another trace (or IOC) that caused this trace: it wrote through a CA link, or a CP link watches one of
 * its records. iocId 0: none that is known. */
ebpfMonChainId ebpfMonTraceGetCause(const ebpfMonTrace *trace);

/* The chain of the trace that has the span of "c". A chain that completes a record has none of its own: the chain that
 * began it has. */
const ebpfMonTraceChain *ebpfMonTraceFindSpanOwner(const ebpfMonTrace *trace, const ebpfMonTraceChain *c);

/* A put that came in a TCP message caused the trace, and it is known which message. */
int ebpfMonTraceHasMessage(const ebpfMonTrace *trace);

/* Whether "isWanted" is nonzero for one of its records, which it gets by their index in the catalogue. */
int ebpfMonTraceHasRecord(const ebpfMonTrace *trace, int (*isWanted)(void *arg, uint32_t index), void *arg);

/* How many records its chains processed, kept or not. */
uint32_t ebpfMonTraceCountRecords(const ebpfMonTrace *trace);

#endif
