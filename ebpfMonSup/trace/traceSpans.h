/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as spans of OpenTelemetry: one for the chain, one for each record, one for what was handed over. */
#ifndef EBPFMON_TRACESPANS_H
#define EBPFMON_TRACESPANS_H

#include "trace/traces.h"

/* One that is complete, or never will be. Event thread, under ebpfMonTargetsLock. Does nothing unless spans are
 * exported. */
void ebpfMonTraceSpansExport(ebpfMonTarget *t, ebpfMonTrace *trace);

#endif
