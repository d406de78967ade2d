/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds IOCs whose process stands still: a signal or a debugger stopped it, or the kernel does not let it go on. No
 * thread of a stopped process works, so no probe tells. Publishing thread only. */
#ifndef EBPFMON_STILLS_H
#define EBPFMON_STILLS_H

#include <epicsTime.h>

#include "health/lives.h"
#include "model/published.h"

typedef struct ebpfMonStills ebpfMonStills;

ebpfMonStills *ebpfMonStillsNew(void); /* NULL without memory */
void ebpfMonStillsFree(ebpfMonStills *stills);

/* "now": the IOCs of this second, "n" of them; "at": the time for events; "seconds": the monotonic time. An IOC whose
 * first thread is stopped or in uninterruptible sleep at each look for ebpfMonHangLimit is an event. Sets health->still
 * and its text. */
void ebpfMonStillsUpdate(ebpfMonStills *stills, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                         double seconds, ebpfMonHealth *health);

/* Nonzero: some IOC stood still at the last look, for a short time or a long one. */
int ebpfMonStillsAreWaiting(const ebpfMonStills *stills);

#endif
