/* SPDX-License-Identifier: BSD-3-Clause */
/* Searches and beacons as the wire tells them. No state; any thread. */
#ifndef EBPFMON_SEARCHPACKETS_H
#define EBPFMON_SEARCHPACKETS_H

#include "search/search.h"
#include "wire/wireEvent.h"

/* Nonzero: the event was a question, an answer or a beacon, and is added. */
int ebpfMonSearchAddPacket(ebpfMonSearch *search, const ebpfMonWireEvent *ev);

#endif
