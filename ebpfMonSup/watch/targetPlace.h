/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which IOCs are watched when there are more IOCs than places. Any process can have the symbols of an IOC, so
 * false IOCs of one user must not take the places of real IOCs. Only the follower uses this module.
 */
#ifndef EBPFMON_TARGETPLACE_H
#define EBPFMON_TARGETPLACE_H

#include "watch/target.h"

/* Finds a place for one more IOC: process "pid", for which "user" pays (host/procRead.h). *victim: the IOC that loses
 * its place, NULL: none. The victim belongs to the user who has most IOCs, but not to a system user while another one
 * has any. If that is "user" itself, the victim must be one that may not be an IOC, and the new process must listen for
 * clients. First goes an IOC whose database was not read, then one that does not listen, then the youngest. 0, or -1:
 * there is no place. */
int ebpfMonTargetPlaceFind(ebpfMonTargets *targets, pid_t pid, uid_t user, ebpfMonTarget **victim);

/* Finds out which targets listen for clients, of those that may not be IOCs. Looks at each now and then, until its
 * database was read. */
void ebpfMonTargetPlaceFindListening(ebpfMonTargets *targets, uint64_t now);

#endif
