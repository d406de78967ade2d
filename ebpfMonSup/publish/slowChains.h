/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces for people: to CHAIN_LOG, and to the shell where they are asked for. Event thread only. */
#ifndef EBPFMON_SLOWCHAINS_H
#define EBPFMON_SLOWCHAINS_H

#include "trace/traceWalk.h"

/* One that is finished. "unixOffset": from monotonic time to time since 1970, ns. Under ebpfMonTargetsLock. */
void ebpfMonSlowChainsPublish(ebpfMonTraceWalk *walk, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset);

#endif
