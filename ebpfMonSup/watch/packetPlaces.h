/* SPDX-License-Identifier: BSD-3-Clause */
/* In which network namespaces packets are read, if there are more than places: each user has a share (common/shares.h).
 * Packet thread only; /proc is read. */
#ifndef EBPFMON_PACKETPLACES_H
#define EBPFMON_PACKETPLACES_H

#include "host/procNetns.h"

/* Keeps at most "max" of these namespaces, the first one (our own) in any case. The others keep their order. Of one
 * user, those stay in which the oldest processes are. *left: of those that are left out, how many belong to system
 * users. Returns how many are left out. */
unsigned ebpfMonPacketPlacesChoose(ebpfMonNetns *list, unsigned count, unsigned max, unsigned *left);

#endif
