/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes what traces need, and connects it: chains become traces, traces become text and spans. */
#ifndef EBPFMON_TRACING_H
#define EBPFMON_TRACING_H

struct ebpfMonMonitor;

/* Sets the members of the monitor from linkMessages to putSpans. Before its threads start. 0, or -1: no memory. */
int ebpfMonTracingNew(struct ebpfMonMonitor *m);

/* After its threads have ended. */
void ebpfMonTracingFree(struct ebpfMonMonitor *m);

#endif
