/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often a device did not answer a record: the record ended with the alarm TIMEOUT, and that was not because its
 * request waited for the port too long. Both are counted from the first look at the record on. The thread of devices
 * only.
 */
#ifndef EBPFMON_DEVICESILENCE_H
#define EBPFMON_DEVICESILENCE_H

#include <stdint.h>

#include "ebpfMonDevice.h"

typedef struct ebpfMonDeviceSilence ebpfMonDeviceSilence;

ebpfMonDeviceSilence *ebpfMonDeviceSilenceNew(void); /* NULL: no memory */
void ebpfMonDeviceSilenceFree(ebpfMonDeviceSilence *silence); /* NULL does no harm */

/* "ended": processings of the record that ended with the alarm; "left": requests of this user that left the queue.
 * Returns how often no answer came since the first call for this user. UINT64_MAX: it is not known, because there is no
 * room for more users, or no memory. */
uint64_t ebpfMonDeviceSilenceCount(ebpfMonDeviceSilence *silence, const struct ebpfMonDeviceKey *user, uint64_t ended,
                                   uint64_t left);

/* Forgets all users of a process. */
void ebpfMonDeviceSilenceForget(ebpfMonDeviceSilence *silence, uint32_t tgid);

#endif
