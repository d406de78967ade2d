/* SPDX-License-Identifier: BSD-3-Clause */
/* A span in a queue: without the unused ends of its texts. Any thread. */
#ifndef EBPFMON_SPANPACK_H
#define EBPFMON_SPANPACK_H

#include "export/otlp/span.h"

#define EBPFMON_SPAN_PACK_MAX (sizeof(ebpfMonSpan) + 64)

/* Writes to "buf", which has EBPFMON_SPAN_PACK_MAX bytes. Returns how many are used. */
size_t ebpfMonSpanPack(const ebpfMonSpan *span, uint8_t *buf);
/* Reads what ebpfMonSpanPack wrote. Unused bytes of "span" stay as they were. */
void ebpfMonSpanUnpack(const uint8_t *buf, ebpfMonSpan *span);

#endif
