/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The chain of another trace that caused a trace: it wrote through a CA link, or a CP link watches one of its records.
 * It may end long after its effect, and only then its event comes: a record behind the link may wait for a device. So a
 * trace waits for it while a thread still holds the lock set of that chain. Event thread only.
 */
#ifndef EBPFMON_TRACECAUSES_H
#define EBPFMON_TRACECAUSES_H

#include "ebpfMonTable.h"
#include "trace/finishedTraces.h"
#include "trace/knownChains.h"
#include "trace/trace.h"

/* Calls "each" for every thread of an IOC that was seen. */
typedef void (*ebpfMonEachThreadFn)(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg);

typedef struct {
    ebpfMonTargets              *targets;       /* these are the caller's */
    const ebpfMonKnownChains    *known;
    const ebpfMonFinishedTraces *finished;
    ebpfMonCpLinkSources        *cpLinkSources;
    ebpfMonEachThreadFn          eachThread;    /* NULL: which chains are under way is not known */
    int      (*exportsSpans)(void *exporter);   /* else the ids of traces do not matter */
    void      *exporter;
    uint64_t   lookedAt;                        /* when the threads were looked at last; monotonic ns */
} ebpfMonTraceCauses;

/* Looks for the chains behind the CP links of the open traces, from "first" on, and whether the chains that they lack
 * are under way. "now": monotonic ns. No lock is held. Called before …Await is asked for a new time. */
void ebpfMonTraceCausesLook(ebpfMonTraceCauses *causes, ebpfMonTrace *first, uint64_t now);

/* Nonzero: what caused this trace, or caused its cause and so on, is not known yet, and may still come. */
int ebpfMonTraceCausesAwait(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now);

/* Nonzero: the trace, which is finished now, lacks its cause, which was under way when it was looked for last. */
int ebpfMonTraceCausesAreLate(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace);

/* When to look next for the sake of this trace (monotonic ns); UINT64_MAX: never. */
uint64_t ebpfMonTraceCausesGetDue(const ebpfMonTraceCauses *causes, const ebpfMonTrace *trace, uint64_t now);

#endif
