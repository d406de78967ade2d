/* SPDX-License-Identifier: BSD-3-Clause */
/* What an IOC is called, and which release it says it is. The follower's. */
#ifndef EBPFMON_TARGETTEXT_H
#define EBPFMON_TARGETTEXT_H

#include "watch/target.h"

/* Of two IOCs with one name the second has its pid in the name. It is not among the targets yet. */
void ebpfMonTargetTextFindName(ebpfMonTargets *targets, ebpfMonTarget *t);

/* Reads the release from its memory. It takes the lock. */
void ebpfMonTargetTextReadVersion(ebpfMonTargets *targets, ebpfMonTarget *t);

#endif
