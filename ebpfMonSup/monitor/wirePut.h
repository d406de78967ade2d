/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that the wire alone told of, as people want to read them. Wire thread only. */
#ifndef EBPFMON_WIREPUT_H
#define EBPFMON_WIREPUT_H

#include "model/put.h"
#include "monitor/join.h"

/* What stands in a PV of a server that is no watched IOC, as far as somebody read it. */
void ebpfMonWirePutValue(const ebpfMonWireEvent *event);

/* What it was before this put, which takes its place. */
void ebpfMonWirePutOld(const ebpfMonWireEvent *event, ebpfMonOld *old);

/* The put that this replies to did not take its place after all. */
void ebpfMonWirePutRefused(const ebpfMonWireEvent *reply, const ebpfMonOld *old);

/* A put to a server that is no watched IOC: a CA link of one that is may have sent it. "at": monotonic ns. */
void ebpfMonWirePutSent(const ebpfMonWireEvent *event, uint64_t at);

/* "server": what to call it. "missed": the inside may have made it unseen. */
void ebpfMonWirePutDone(const ebpfMonJoinEntry *entry, const char *server, int missed);

#endif
