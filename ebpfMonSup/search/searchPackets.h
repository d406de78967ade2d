/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds the searches, answers and beacons that wire/ found in packets. No state; any thread. */
#ifndef EBPFMON_SEARCHPACKETS_H
#define EBPFMON_SEARCHPACKETS_H

#include "search/search.h"
#include "wire/wireEvent.h"

/* Nonzero: the event was a search, an answer or a beacon, and was added. 0: the event is of another kind. */
int ebpfMonSearchAddPacket(ebpfMonSearch *search, const ebpfMonWireEvent *ev);

#endif
