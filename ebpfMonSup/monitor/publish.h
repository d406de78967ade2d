/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread: once a second, the counts and latencies of the kernel's tables to the board. */
#ifndef EBPFMON_PUBLISH_H
#define EBPFMON_PUBLISH_H

#include "model/board.h"

void ebpfMonPublishStart(void);
void ebpfMonPublishStop(void);

/* What runs badly besides the targets: shown as state Degraded. Empty: nothing. */
void ebpfMonPublishTrouble(const char *text);
void ebpfMonPublishState(ebpfMonState state, const char *text);
void ebpfMonPublishResetLost(void);

#endif
