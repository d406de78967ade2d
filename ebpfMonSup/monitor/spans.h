/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as spans of OpenTelemetry: one for the chain, one for each record, one for what was handed over. */
#ifndef EBPFMON_SPANS_H
#define EBPFMON_SPANS_H

#include "monitor/traces.h"

/* One that is complete, or never will be. Event thread, under ebpfMonTargetsLock. Does nothing unless spans are
 * exported. */
void ebpfMonSpansTell(ebpfMonTarget *t, ebpfMonTrace *trace);

#endif
