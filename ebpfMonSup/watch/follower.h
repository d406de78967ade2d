/* SPDX-License-Identifier: BSD-3-Clause */
/* The target thread. Any thread may call these. */
#ifndef EBPFMON_FOLLOWER_H
#define EBPFMON_FOLLOWER_H

#include <sys/types.h>

#include "model/filter.h"

void ebpfMonFollowerStart(int watchSelf, const ebpfMonFilter *first);
int ebpfMonFollowerStop(void); /* 0, or -1: it still runs */
void ebpfMonFollowerNoteExec(pid_t pid); /* a program was started */
void ebpfMonFollowerNoteExit(pid_t pid); /* a target's first thread ended */

#endif
