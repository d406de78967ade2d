/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids of traces that were told a moment ago: for those that they sent something to, whose CP links watch them, and for
 * what they left processing. Event thread only. */
#ifndef EBPFMON_FINISHEDTRACES_H
#define EBPFMON_FINISHEDTRACES_H

#include "trace/traces.h"

void ebpfMonFinishedTracesAdd(const ebpfMonTrace *trace);

/* The id of the trace that this chain was told in; NULL: it was not, it had none, or that is too long ago. */
const uint8_t *ebpfMonFinishedTracesFind(const ebpfMonChainId *chain);

#endif
