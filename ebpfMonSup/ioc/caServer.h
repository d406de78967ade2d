/* SPDX-License-Identifier: BSD-3-Clause */
/* How many clients and channels the CA server of an IOC has, as its own command casr counts them; read from its memory. */
#ifndef EBPFMON_CASERVER_H
#define EBPFMON_CASERVER_H

#include <stdint.h>
#include <sys/types.h>
#include "ioc/baseRelease.h"

/* "clientQ": ebpfMonImage.clientQ. 0, or -1: it cannot be read, or the list is not to be believed. */
int ebpfMonCaServerCount(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *offsets, unsigned *clients,
                         unsigned *channels);

#endif
