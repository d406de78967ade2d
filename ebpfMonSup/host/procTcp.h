/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP sockets of a network namespace, and those of a process. The kernel names a socket by inode, and the links in
 * /proc/PID/fd ("socket:[INODE]") say who has it (proc(5)).
 */
#ifndef EBPFMON_PROCTCP_H
#define EBPFMON_PROCTCP_H

#include "host/tcpDiag.h"

/* Calls "each" for the sockets that are in one of "states", in the network namespace of process "pid" (0: our own),
 * until "each" returns nonzero. Returns this value, or 0. Asks the kernel by sock_diag(7) (tcpDiag.h); if the kernel
 * does not answer, reads the tables of /proc. A missing table counts as empty. */
int ebpfMonTcpRows(pid_t pid, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg);

/* The same for all UDP sockets, of which "local", "localPort" and "inode" are set. Reads the tables of /proc. */
int ebpfMonUdpRows(pid_t pid, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg);

/* Calls "each" for the sockets that the process has open: the number of the file, and the inode. 0, or -1 when the
 * process is gone. */
int ebpfMonTcpOwned(pid_t pid, void (*each)(void *arg, unsigned file, unsigned long inode), void *arg);

/* Nonzero: the process has this socket at this number of its files. Takes a microsecond. */
int ebpfMonTcpHasSocket(pid_t pid, unsigned file, unsigned long inode);

#endif
