/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EBPFMON_PROCCONTAINER_H
#define EBPFMON_PROCCONTAINER_H
#include <stddef.h>
#include <sys/types.h>
int ebpfMonProcContainer(pid_t pid, char *buf, size_t size);
#endif
