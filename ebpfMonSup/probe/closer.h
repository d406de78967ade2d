/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes probes. A link in the folder is removed from it, which takes no time. For any other link,
 * close() waits some 40 ms for a grace period of the kernel. An IOC has some 14 probes: if one thread closed them one
 * by one, 100 IOCs that end would take a minute. Threads that close at the same time share the grace period
 * (synchronize_rcu_tasks_trace and synchronize_srcu in uprobe_unregister_sync of the kernel). So up to 32 threads
 * close. They start when there is something to close, and end when there is nothing.
 *
 * One per process, as the file descriptors are. Any thread.
 */
#ifndef EBPFMON_CLOSER_H
#define EBPFMON_CLOSER_H

/* --- the folder ---
 *
 * Keeps the links of probes in a folder of a BPF file system that only this process has: fsmount() gives it no path, so
 * no other process can open it. When a link is removed from the folder, a thread of the kernel closes it (bpf_link_put
 * with the reference count 0, kernel/bpf/syscall.c), not a thread of ours. This has three effects:
 *
 * - If this process is killed while it detaches, no trap stays in an IOC. A close() in a process that has a pending
 *   SIGKILL cannot remove its trap (documentation/develop/probes.md, "Ends that are not orderly").
 * - To detach takes some microseconds; close() waits some 40 ms for a grace period of the kernel.
 * - A probe needs no file descriptor.
 *
 * When the process ends, the kernel removes the folder and all links in it.
 *
 * One per process, as the file descriptors are. Any thread.
 */

/* Moves a link into the folder and closes "fd". Returns the number of the link in the folder. 0: "fd" stays open,
 * because the kernel has no such folder (it needs 6.5), or does not allow it to us (CAP_SYS_ADMIN). */
unsigned ebpfMonLinkFolderAdd(int fd);

/* --- closing --- */

struct bpf_link;

/* A probe that is attached: a uprobe_multi link where the kernel has them (then "link" is NULL), else a perf event. */
typedef struct {
    unsigned inFolder;     /* its number in the folder; 0: it has a file descriptor */
    int fd;                /* of the uprobe_multi link, if it is not in the folder */
    struct bpf_link *link; /* of the perf event; NULL: it is none */
} ebpfMonProbe;

/* Closes the probes, in this order or at the same time, and waits until all are closed. */
void ebpfMonCloserClose(const ebpfMonProbe *probes, unsigned count);

/* Closes the probes some time later, and does not wait: for probes of a process that has ended, which can cause no
 * traps any more. */
void ebpfMonCloserCloseLater(const ebpfMonProbe *probes, unsigned count);

/* The process ends: from now on probes that are not in the folder stay open, and the kernel closes them when it closes
 * all files. A thread that is killed while it closes a probe leaves a trap ("Ends that are not orderly" in
 * documentation/develop/probes.md), and 32 threads leave 32. A process that is closing its files cannot be killed. */
void ebpfMonCloserLeave(void);

/* Waits until all probes of ebpfMonCloserCloseLater are closed, "seconds" at most. 0, or -1: some are not. */
int ebpfMonCloserFinish(double seconds);

#endif
