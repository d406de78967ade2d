/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of the system calls of this machine. */
#ifndef EBPFMON_SYSCALLNAME_H
#define EBPFMON_SYSCALLNAME_H

#include <stddef.h>

/* "futex"; "system call 999" for those that are not in the list. */
void ebpfMonSyscallName(long number, char *buf, size_t size);

/* The number of a system call; -1: this machine has no system call of that name. */
long ebpfMonSyscallNumber(const char *name);

#endif
