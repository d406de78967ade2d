/* SPDX-License-Identifier: BSD-3-Clause */
/* The event thread: takes events off the ring and puts what they mean on the board. */
#ifndef EBPFMON_EVENTS_H
#define EBPFMON_EVENTS_H

void ebpfMonEventsStart(void);
void ebpfMonEventsStop(void);

#endif
