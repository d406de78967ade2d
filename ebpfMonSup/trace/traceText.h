/* SPDX-License-Identifier: BSD-3-Clause */
/* A trace as text: a tree of records, each below the one that made it process. Event thread only. */
#ifndef EBPFMON_TRACETEXT_H
#define EBPFMON_TRACETEXT_H

#include "trace/traceShape.h"

/* Wall-clock time of the end of a half. */
epicsTimeStamp ebpfMonTraceEnd(const ebpfMonTraceChain *half);

/* What set it going: "scan .1 second", "put by …". */
void ebpfMonTraceCause(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size);

/* What the half was handed over as: "scanOnce", "I/O Intr", "Event", "callback". */
void ebpfMonTraceHow(ebpfMonTarget *t, const ebpfMonTraceChain *half, char *buf, size_t size);

/* The first half, or the next after "after", that "half" handed over; NULL: none. Those of which a record of "half" is
 * the root have its index, the others UINT32_MAX. */
const ebpfMonTraceChain *ebpfMonTraceHanded(const ebpfMonTraceChain *half, const ebpfMonTraceShape *shape, uint32_t index,
                                      const ebpfMonTraceChain *after);

/* The half that completes what "half" left the record of this index processing; NULL: none that is known. */
const ebpfMonTraceChain *ebpfMonTraceNext(const ebpfMonTraceChain *half, uint32_t index, const ebpfMonTraceChain *after);

/* Whether it has a record that "wanted" likes, by its index. */
int ebpfMonTraceHas(const ebpfMonTrace *trace, int (*wanted)(void *arg, uint32_t index), void *arg);

/* VAL as its record has it; empty where it is no scalar. */
void ebpfMonTraceValue(ebpfMonTarget *t, const struct ebpfMonChainRec *rec, char *buf, size_t size);

/* Returns the length; what does not fit is left out, and said so. Under ebpfMonTargetsLock. */
size_t ebpfMonTraceText(ebpfMonTarget *t, const ebpfMonTrace *trace, char *buf, size_t size);

#endif
