/* SPDX-License-Identifier: BSD-3-Clause */
/* How many clients and channels the CA server of an IOC has, as its own command casr counts them; read from its
 * memory. */
#ifndef EBPFMON_CASERVER_H
#define EBPFMON_CASERVER_H

#include <stdint.h>
#include <sys/types.h>
#include "ioc/baseLayout.h"
#include "ioc/catalogue.h"

/* "clientQ": ebpfMonImage.clientQ. 0, or -1: the list cannot be read, or cannot be believed. */
int ebpfMonCaServerCount(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *base, unsigned *clients,
                         unsigned *channels);

/* Tries a layout on a client and a channel. 1: it is right. 0: there is no client with a channel to check. -1: it is
 * wrong, or is just being changed; *odd is the member that is otherwise. Flush the reader before. */
int ebpfMonCaServerIsKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base,
                           uint64_t clientQ, const char **odd);

#endif
