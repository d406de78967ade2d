/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells where threads hang: the frames of their stacks, and the record that the innermost function works on. Publishing
 * thread only. */
#ifndef EBPFMON_HANGSTACKS_H
#define EBPFMON_HANGSTACKS_H

#include <sys/types.h>
#include "health/hangs.h"
#include "health/hangSources.h"
#include "watch/target.h"

typedef struct ebpfMonHangStacks ebpfMonHangStacks;

/* "targets" and "sources" stay the caller's. NULL without memory. */
ebpfMonHangStacks *ebpfMonHangStacksNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources);
void ebpfMonHangStacksFree(ebpfMonHangStacks *stacks);

/* Call this once a second for each hang. The caller has set hang->id, tid, begin and what. Sets hang->now, and adds the
 * frames to hang->what. Takes the targets lock. */
void ebpfMonHangStacksDescribe(ebpfMonHangStacks *stacks, pid_t pid, ebpfMonHang *hang);

/* Adds the hang to health->hangLine: hang->who as title, then its frames, as far as there are lines. Call this after
 * ebpfMonHangStacksDescribe. */
void ebpfMonHangStacksAddLines(const ebpfMonHangStacks *stacks, pid_t pid, const ebpfMonHang *hang,
                               ebpfMonHealth *health);

#endif
