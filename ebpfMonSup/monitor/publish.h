/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread: once a second, the counts and latencies of the kernel's tables to the board; IOCs
 * and state as they change. */
#ifndef EBPFMON_PUBLISH_H
#define EBPFMON_PUBLISH_H

#include "model/board.h"

/* Before the other threads, which call ebpfMonPublishSoon. */
void ebpfMonPublishInit(void);
void ebpfMonPublishStart(void);
/* The IOCs or the state changed: they are published at once. Any thread. */
void ebpfMonPublishSoon(void);
void ebpfMonPublishStop(void);

/* What runs badly besides the targets: shown as state Degraded. Empty: nothing. */
void ebpfMonPublishTrouble(const char *text);
void ebpfMonPublishState(ebpfMonState state, const char *text);
void ebpfMonPublishResetLost(void);

#endif
