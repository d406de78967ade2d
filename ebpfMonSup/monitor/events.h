/* SPDX-License-Identifier: BSD-3-Clause */
/* The event thread: takes events off the ring and puts what they mean on the board. */
#ifndef EBPFMON_EVENTS_H
#define EBPFMON_EVENTS_H

#include <stdint.h>

void ebpfMonEventsStart(void);
void ebpfMonEventsStop(void);

/* Put events whose target or record was not to be found: lost. */
uint64_t ebpfMonEventsUnnamed(void);

#endif
