/* SPDX-License-Identifier: BSD-3-Clause */
/* A put without the unused ends of its texts: some 200 bytes instead of 3 KB. */
#ifndef EBPFMON_PUTPACK_H
#define EBPFMON_PUTPACK_H

#include <stddef.h>
#include <stdint.h>

#include "model/put.h"

#define EBPFMON_PACK_MAX (sizeof(ebpfMonPut) + 128)

/* Bytes used of buf, which has EBPFMON_PACK_MAX. "who" and "origin" are made of the rest and are left out. */
size_t ebpfMonPutPack(const ebpfMonPut *put, uint8_t *buf);
void ebpfMonPutUnpack(const uint8_t *buf, size_t len, ebpfMonPut *put);

#endif
