/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces for people: to CHAIN_SLOW, and to the shell where they are asked for. Event thread only. */
#ifndef EBPFMON_SLOW_H
#define EBPFMON_SLOW_H

#include "monitor/traces.h"

/* One that is complete, or never will be. Under ebpfMonTargetsLock. */
void ebpfMonSlowTell(ebpfMonTarget *t, const ebpfMonTrace *trace);

#endif
