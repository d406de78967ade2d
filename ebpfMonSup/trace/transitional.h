/* SPDX-License-Identifier: BSD-3-Clause */
/* For the time of the change to contexts only: until finished puts come to the monitor by a sink, room put/ calls these. */
#ifndef EBPFMON_TRACE_TRANSITIONAL_H
#define EBPFMON_TRACE_TRANSITIONAL_H

#include "trace/putSpans.h"
#include "trace/traces.h"

extern ebpfMonTraces *ebpfMonTheTraces;
extern ebpfMonLinkMessages *ebpfMonTheLinkMessages;
extern ebpfMonPutSpans *ebpfMonThePutSpans;

#endif
