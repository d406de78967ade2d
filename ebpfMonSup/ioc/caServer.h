/* SPDX-License-Identifier: BSD-3-Clause */
/* How many clients and channels the CA server of an IOC has, as its own command casr counts them; read from its memory. */
#ifndef EBPFMON_CASERVER_H
#define EBPFMON_CASERVER_H

#include <stdint.h>
#include <sys/types.h>
#include "ioc/baseRelease.h"
#include "ioc/catalogue.h"

/* "clientQ": ebpfMonImage.clientQ. 0, or -1: it cannot be read, or the list is not to be believed. */
int ebpfMonCaServerCount(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *offsets, unsigned *clients,
                         unsigned *channels);

/* 1: its clients and channels lie in memory as the release of this IOC has it, found out at one of them. 0: it has none
 * that would show it. -1: they do not, or they change just now. The reader is to be flushed before. */
int ebpfMonCaServerIsKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t clientQ);

#endif
