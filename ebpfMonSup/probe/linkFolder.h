/* SPDX-License-Identifier: BSD-3-Clause */
/*
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
#ifndef EBPFMON_LINKFOLDER_H
#define EBPFMON_LINKFOLDER_H

/* Moves a link into the folder and closes "fd". Returns the number of the link in the folder. 0: "fd" stays open,
 * because the kernel has no such folder (it needs 6.5), or does not allow it to us (CAP_SYS_ADMIN). */
unsigned ebpfMonLinkFolderAdd(int fd);

/* Removes a link from the folder. The kernel then removes the probe soon, mostly within 10 ms. Until then its program
 * may run. */
void ebpfMonLinkFolderRemove(unsigned number);

#endif
