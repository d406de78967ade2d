/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes probes. Each close() waits for a grace period of the kernel, some 40 ms, in which it does nothing, and an IOC has
 * some 14 probes: one after the other, 100 IOCs that end keep a thread busy for a minute. Threads that close at the same
 * time share the grace period (synchronize_rcu_tasks_trace and synchronize_srcu in uprobe_unregister_sync), so up to 32
 * threads do. They come when there is something to close, and go when there is not.
 *
 * One in a process, as the file descriptors are. Any thread.
 */
#ifndef EBPFMON_CLOSER_H
#define EBPFMON_CLOSER_H

struct bpf_link;

/* A probe that is on: a uprobe_multi link where the kernel has them ("link" is NULL), else a perf event. */
typedef struct {
    int fd;
    struct bpf_link *link;
} ebpfMonProbe;

/* Closes them, in this order or at the same time, and waits until all are. */
void ebpfMonCloserClose(const ebpfMonProbe *probes, unsigned count);

/* Closes them some time later: for probes of a process that has ended, which nothing can hit any more. */
void ebpfMonCloserCloseLater(const ebpfMonProbe *probes, unsigned count);

/* Waits at most "seconds" until all that was to be closed later is. 0, or -1: not yet. */
int ebpfMonCloserFinish(double seconds);

#endif
