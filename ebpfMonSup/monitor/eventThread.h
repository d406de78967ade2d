/* SPDX-License-Identifier: BSD-3-Clause */
/* The event thread: takes events off the ring and puts what they mean on the published. */
#ifndef EBPFMON_EVENTTHREAD_H
#define EBPFMON_EVENTTHREAD_H

void ebpfMonEventThreadStart(void);
void ebpfMonEventThreadStop(void);

#endif
