/* SPDX-License-Identifier: BSD-3-Clause */
/* The network devices of a namespace, besides lo, from the kernel (rtnetlink(7)). One thread. */
#ifndef EBPFMON_NETDEVICES_H
#define EBPFMON_NETDEVICES_H

#include <sys/types.h>

typedef struct ebpfMonNetDevices ebpfMonNetDevices;

/* Of the namespace of process "pid", 0: of our own. NULL with errno. */
ebpfMonNetDevices *ebpfMonNetDevicesOpen(pid_t pid);
void ebpfMonNetDevicesClose(ebpfMonNetDevices *devices); /* NULL does no harm */

/* Nonzero: one came or went since the last list, or perhaps. */
int ebpfMonNetDevicesHaveChanged(ebpfMonNetDevices *devices);

/* Their indices, at most "max". Returns how many there are, which may be more; -1 with errno. Waits for the kernel's answer
 * a second at most. */
int ebpfMonNetDevicesList(ebpfMonNetDevices *devices, int *index, unsigned max);

#endif
