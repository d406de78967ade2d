/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces for people: to CHAIN_LOG, and to the shell where they are asked for. Event thread only. */
#ifndef EBPFMON_SLOWCHAINS_H
#define EBPFMON_SLOWCHAINS_H

#include "trace/traces.h"

/* One that is complete, or never will be. Under ebpfMonTargetsLock. */
void ebpfMonSlowChainsPublish(ebpfMonTarget *t, const ebpfMonTrace *trace);

#endif
