/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is watched when there are more IOCs than places. Any process can have the symbols of an IOC, so a user's fakes must
 * not take the places of real IOCs. The follower's alone.
 */
#ifndef EBPFMON_TARGETPLACE_H
#define EBPFMON_TARGETPLACE_H

#include "watch/target.h"

/* A place for one more IOC: process "pid" of user "uid". *victim: whoever has to leave for it, NULL: nobody. It is one of the
 * user who has most; of this user's own only one that is perhaps no IOC, and if the new one listens for clients. First
 * goes whose database was not read, then who does not listen, then the youngest. 0, or -1: there is no place. */
int ebpfMonTargetPlaceFind(ebpfMonTargets *targets, pid_t pid, uid_t uid, ebpfMonTarget **victim);

/* Which of those that are perhaps no IOCs listen for clients. Looks at each now and then, until its database was read. */
void ebpfMonTargetPlaceFindListening(ebpfMonTargets *targets, uint64_t now);

#endif
