/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put in a queue: without the unused ends of its texts, some 200 bytes instead of 3 KB. Its members "who" and
 * "origin" are left out, because they can be made from the others. Any thread.
 */
#ifndef EBPFMON_PUTPACK_H
#define EBPFMON_PUTPACK_H

#include <stddef.h>
#include <stdint.h>

#include "model/put.h"

#define EBPFMON_PUT_PACK_MAX (sizeof(ebpfMonPut) + 128)

/* Writes to "buf", which has EBPFMON_PUT_PACK_MAX bytes. Returns how many are used. */
size_t ebpfMonPutPack(const ebpfMonPut *put, uint8_t *buf);

/* Reads the "len" bytes that ebpfMonPutPack wrote. */
void ebpfMonPutUnpack(const uint8_t *buf, size_t len, ebpfMonPut *put);

#endif
