/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls a function, or opens a socket, in the network namespace of another process; asks the kernel there. */
#ifndef EBPFMON_NETNSSOCKET_H
#define EBPFMON_NETNSSOCKET_H

#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonEvent.h"

/*
 * Calls "call" in the network namespace that process "pid" lives in; 0: in our own. "netns": gets the inode of that
 * namespace, if it is not NULL. Returns what "call" returned; -1 with errno: the process is gone, or we may not enter
 * (CAP_SYS_ADMIN, CAP_SYS_PTRACE). The calling thread is in the other namespace for a moment. If it cannot come back,
 * the thread is suspended, because everything that it did from then on would happen in the wrong network.
 */
int ebpfMonNetnsCall(pid_t pid, int (*call)(void *arg), void *arg, uint32_t *netns);

/* As socket(2), there. */
int ebpfMonNetnsSocketOpen(pid_t pid, int domain, int type, int protocol, uint32_t *netns);

/* Opens a netlink socket (netlink(7)) there, for questions to the kernel. Only the kernel can send to it: root of a
 * container may send to any other netlink socket of its namespace. A file for the caller to close; -1 with errno. */
int ebpfMonNetnsNetlinkOpen(pid_t pid, int protocol);

/* --- network devices ---
 *
 * The network devices of a namespace, besides lo, from the kernel (rtnetlink(7)). One thread.
 */

typedef struct ebpfMonNetDevices ebpfMonNetDevices;

/* Of the namespace of process "pid", 0: of our own. NULL with errno. */
ebpfMonNetDevices *ebpfMonNetDevicesOpen(pid_t pid);
void ebpfMonNetDevicesClose(ebpfMonNetDevices *devices); /* NULL does no harm */

/* Nonzero: a device came or went since the last list, or may have. */
int ebpfMonNetDevicesHaveChanged(ebpfMonNetDevices *devices);

/* Lists the indices of the devices, at most "max". Returns the number of devices, which may be larger than "max"; -1
 * with errno. Waits for the kernel's answer a second at most. */
int ebpfMonNetDevicesList(ebpfMonNetDevices *devices, int *index, unsigned max);

/* --- addresses of this host ---
 *
 * The addresses of a network namespace. Any thread. */

#define EBPFMON_OWN_ADDRESSES_MAX 256

typedef struct {
    unsigned count;
    uint32_t addr[EBPFMON_OWN_ADDRESSES_MAX]; /* as in struct ebpfMonPeer, as the next one */
    uint32_t addr6[EBPFMON_OWN_ADDRESSES_MAX][4];
} ebpfMonOwnAddresses;

/* Those of the namespace in which process "pid" is (0: we). Takes some 0.1 ms. */
void ebpfMonOwnAddressesRead(pid_t pid, ebpfMonOwnAddresses *own);

int ebpfMonOwnAddressesHave(const ebpfMonOwnAddresses *own, uint32_t addr, const uint32_t addr6[4]);

#endif
