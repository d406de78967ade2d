/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps the links of probes in a folder of a BPF file system that only this process has (fsmount without a path: nobody
 * else can name it). A link that leaves the folder is closed by a thread of the kernel (bpf_link_put with the refcount 0,
 * kernel/bpf/syscall.c), not by ours. This has three effects:
 *
 * - If this process is killed while it detaches, no trap stays in an IOC. A close() in a process that has a pending
 *   SIGKILL cannot remove its trap (documentation/internals.md, "Ends that are not orderly").
 * - To detach takes some microseconds; close() waits some 40 ms for a grace period of the kernel.
 * - A probe has no file descriptor.
 *
 * The folder ends with the process, and all links in it.
 *
 * One in a process, as the file descriptors are. Any thread.
 */
#ifndef EBPFMON_LINKFOLDER_H
#define EBPFMON_LINKFOLDER_H

/* Moves a link into the folder and closes "fd". Returns its number there, or 0: then "fd" stays open, because the kernel
 * has no such folder (it needs 6.5), or does not allow it to us (CAP_SYS_ADMIN). */
unsigned ebpfMonLinkFolderAdd(int fd);

/* The kernel removes the probe soon, mostly within 10 ms. Until then its program may run. */
void ebpfMonLinkFolderRemove(unsigned number);

#endif
