/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the programs of bpf/wire.bpf.c see the packets of a network namespace. A packet socket costs each packet of the
 * host, wanted or not, so lo, where most packets of a host are, has a tcx program instead (kernel 6.6, CAP_NET_ADMIN): that
 * costs a tenth. Each other device then has a packet socket of its own. Without tcx, and in a namespace with very many
 * devices, one packet socket sees all. Nothing is changed, delayed or sent; all of it goes with its files. One thread.
 */
#ifndef EBPFMON_PACKETTAPS_H
#define EBPFMON_PACKETTAPS_H

#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_TAP_DEVICES_MAX 64 /* besides lo */

typedef struct ebpfMonPacketTaps ebpfMonPacketTaps;

/* Nonzero: this kernel has tcx, and we may use it. Tried at each call. */
int ebpfMonPacketTapsHaveTcx(void);

/* In the network namespace of process "pid", 0: our own. The programs are loaded, and stay the caller's; "loProgram" -1:
 * without tcx. "netns": gets the inode of the namespace. NULL with errno. */
ebpfMonPacketTaps *ebpfMonPacketTapsOpen(pid_t pid, int socketProgram, int loProgram, uint32_t *netns);
void ebpfMonPacketTapsClose(ebpfMonPacketTaps *taps); /* NULL does no harm */

/* Devices may have come and gone. "pid": a process of the namespace, 0: our own. To be called every few seconds. */
void ebpfMonPacketTapsFollow(ebpfMonPacketTaps *taps, pid_t pid);

/* Nonzero: lo has a tcx program. */
int ebpfMonPacketTapsUseTcx(const ebpfMonPacketTaps *taps);

#endif
