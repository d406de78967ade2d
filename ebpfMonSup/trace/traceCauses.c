/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/traceCauses.h"
#include "trace/traceWords.h"

#define CAUSE_NS 100000000ull /* from the end of a chain to its event, at most */
#define LOOK_NS  50000000ull  /* between two looks at the threads: less, so the event has time after the last look that
                               * found the chain under way */
#define CAUSES   8            /* traces of which each caused the next while all are open */

/* Nonzero: its trace is not there (any more). */
static int isMissing(const ebpfMonTraceCauses *causes, const ebpfMonChainId *chain)
{
    return chain->iocId && !ebpfMonKnownChainsFind(causes->known, chain) &&
           !ebpfMonFinishedTracesFind(causes->finished, chain);
}

/* Nonzero: something in another trace caused it, and it is not known what. */
static int lacksCausingChain(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace)
{
    ebpfMonChainId cause = ebpfMonTraceGetCause(trace);

    return trace->cpLink || (causes->exportsSpans(causes->exporter) && isMissing(causes, &cause));
}

static int isYoung(const ebpfMonTrace *trace, uint64_t now)
{
    return !trace->causeSeen || now < trace->causeSeen + CAUSE_NS;
}

/* The id of a trace is that of the trace that caused it, and so on. Their puts may be known later than its own, and
 * their chains may end later than what they caused. */
int ebpfMonTraceCausesAwait(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now)
{
    if (trace->cpLink && isYoung(trace, now))
        return 1;
    if (!causes->exportsSpans(causes->exporter))
        return 0;
    for (unsigned i = 0; trace && !trace->hasId && i < CAUSES; i++) {
        ebpfMonChainId cause = ebpfMonTraceGetCause(trace);
        const ebpfMonTraceChain *above = cause.iocId ? ebpfMonKnownChainsFind(causes->known, &cause) : NULL;

        if (trace->awaitsPut)
            return 1;
        if (lacksCausingChain(causes, trace))
            return isYoung(trace, now);
        trace = above ? above->trace : NULL;
    }
    return 0;
}

int ebpfMonTraceCausesAreLate(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace)
{
    return trace->causeSeen >= causes->lookedAt && lacksCausingChain(causes, trace);
}

/* --- CP links --- */

/* Under ebpfMonTargetsLock. */
static void findCpLinkSource(const ebpfMonTraceCauses *causes, ebpfMonTarget *t, ebpfMonTrace *trace)
{
    ebpfMonCpLinkResult r = ebpfMonCpLinkSourcesFind(causes->cpLinkSources, t, trace->first->chain.rootSlot,
                                                     trace->cpLink, &trace->source);

    if (r == ebpfMonCpLinkAwaited)
        return;
    free(trace->cpLink);
    trace->cpLink = NULL;
}

/* The source chain may end after the chain that it caused: so it is looked for again and again, in tables only. */
static void lookForCpLinkSource(const ebpfMonTraceCauses *causes, ebpfMonTrace *trace)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(causes->targets);
    ebpfMonTarget *t;

    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(causes->targets);
        t = ebpfMonTraceFindTarget(causes->targets, trace);
        if (t && trace->cpLink)
            findCpLinkSource(causes, t, trace);
        ebpfMonTargetsUnlock(causes->targets);
    } while (ebpfMonLateReadsMake(reads));
}

/* --- which chains are under way --- */

typedef struct {
    const ebpfMonTraceCauses *causes;
    ebpfMonTrace *first;
    uint64_t now;
} threadLook;

/* Nonzero: this chain, which is under way, caused the trace, or may have: of a CP link only the IOC of its source is
 * known, and that the source began before. */
static int mayCause(const ebpfMonTrace *trace, uint32_t tgid, uint32_t tid, uint64_t begin)
{
    ebpfMonChainId cause = ebpfMonTraceGetCause(trace);

    if (trace->cpLink)
        return trace->cpLink->sourcePid == tgid && begin < trace->first->chain.begin;
    return cause.tid == tid && cause.begin == begin;
}

static void lookAtThread(void *arg, uint32_t tid, const struct ebpfMonThread *seen)
{
    const threadLook *look = arg;

    for (uint32_t i = 0; i < seen->heldCount && i < EBPFMON_NESTED; i++)
        for (ebpfMonTrace *trace = look->first; trace; trace = trace->next)
            if (trace->causeSeen != look->now && lacksCausingChain(look->causes, trace) &&
                mayCause(trace, seen->tgid, tid, seen->held[i].begin))
                trace->causeSeen = look->now;
}

void ebpfMonTraceCausesLook(ebpfMonTraceCauses *causes, ebpfMonTrace *first, uint64_t now)
{
    threadLook look = { .causes = causes, .first = first, .now = now };
    int isDue = 0;

    for (ebpfMonTrace *trace = first; trace; trace = trace->next) {
        if (trace->cpLink)
            lookForCpLinkSource(causes, trace);
        if (!lacksCausingChain(causes, trace))
            continue;
        if (!trace->causeSeen)
            trace->causeSeen = now > trace->end ? now : trace->end;
        isDue |= trace->causeSeen >= causes->lookedAt && now >= trace->causeSeen + LOOK_NS;
    }
    if (!isDue)
        return;
    if (causes->eachThread)
        causes->eachThread(lookAtThread, &look);
    causes->lookedAt = now;
}

uint64_t ebpfMonTraceCausesGetDue(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now)
{
    uint64_t look = trace->causeSeen + LOOK_NS, over = trace->causeSeen + CAUSE_NS;

    if (!trace->causeSeen)
        return UINT64_MAX;
    return look > now && trace->causeSeen >= causes->lookedAt ? look : over > now ? over : UINT64_MAX;
}
