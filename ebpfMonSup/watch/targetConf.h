/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel part must know of an IOC: struct ebpfMonTargetConf. The follower alone. */
#ifndef EBPFMON_TARGETCONF_H
#define EBPFMON_TARGETCONF_H

#include "watch/target.h"

/* The IOC must have a catalogue. "level": the one that its probes are for. */
void ebpfMonTargetConfFill(struct ebpfMonTargetConf *conf, const ebpfMonTarget *t, ebpfMonLevel level,
                           const ebpfMonFilter *filter);

#endif
