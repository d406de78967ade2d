/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The places at which the programs of bpf/wire/wire.bpf.c see the packets of a network namespace. Most packets of a
 * host are on lo. A packet socket takes time from each of them, wanted or not. So lo has a tcx program, which takes a
 * tenth of that (kernel 6.6, CAP_NET_ADMIN), and each other device has a packet socket of its own. Without tcx, and in
 * a namespace with very many devices, one packet socket sees all devices. The programs change, delay and send nothing;
 * the kernel removes them when their files are closed. One thread at a time.
 */
#ifndef EBPFMON_PACKETTAPS_H
#define EBPFMON_PACKETTAPS_H

#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_TAP_DEVICES_MAX 64 /* network devices besides lo */

typedef struct ebpfMonPacketTaps ebpfMonPacketTaps;

/* Nonzero: this kernel has tcx, and we may use it. Each call tries it. */
int ebpfMonPacketTapsHaveTcx(void);

/* Opens the taps in the network namespace of process "pid"; 0: in our own. "socketProgram", "loProgram": file
 * descriptors of loaded programs, which stay the caller's; "loProgram" -1: do not use tcx. *netns gets the inode of the
 * namespace. NULL with errno. */
ebpfMonPacketTaps *ebpfMonPacketTapsOpen(pid_t pid, int socketProgram, int loProgram, uint32_t *netns);
void ebpfMonPacketTapsClose(ebpfMonPacketTaps *taps); /* NULL does no harm */

/* Adapts the sockets to the network devices that exist now. "pid": a process of the namespace; 0: our own. Call it
 * every few seconds. */
void ebpfMonPacketTapsFollow(ebpfMonPacketTaps *taps, pid_t pid);

/* Nonzero: lo has a tcx program. */
int ebpfMonPacketTapsUseTcx(const ebpfMonPacketTaps *taps);

#endif
