/* SPDX-License-Identifier: BSD-3-Clause */
/* The network devices of a namespace, besides lo, from the kernel (rtnetlink(7)). One thread. */
#ifndef EBPFMON_NETDEVICES_H
#define EBPFMON_NETDEVICES_H

#include <sys/types.h>

typedef struct ebpfMonNetDevices ebpfMonNetDevices;

/* Of the namespace of process "pid", 0: of our own. NULL with errno. */
ebpfMonNetDevices *ebpfMonNetDevicesOpen(pid_t pid);
void ebpfMonNetDevicesClose(ebpfMonNetDevices *devices); /* NULL does no harm */

/* Nonzero: a device came or went since the last list, or may have. */
int ebpfMonNetDevicesHaveChanged(ebpfMonNetDevices *devices);

/* Lists the indices of the devices, at most "max". Returns the number of devices, which may be larger than "max"; -1
 * with errno. Waits for the kernel's answer a second at most. */
int ebpfMonNetDevicesList(ebpfMonNetDevices *devices, int *index, unsigned max);

#endif
