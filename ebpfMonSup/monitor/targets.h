/* SPDX-License-Identifier: BSD-3-Clause */
/* The target thread. Any thread may call these. */
#ifndef EBPFMON_TARGETS_H
#define EBPFMON_TARGETS_H

#include <sys/types.h>

#include "model/filter.h"

void ebpfMonTargetsStart(int watchSelf, const ebpfMonFilter *first);
void ebpfMonTargetsStop(void);
void ebpfMonTargetsExec(pid_t pid); /* a program was started */
void ebpfMonTargetsExit(pid_t pid); /* a target's first thread ended */

#endif
