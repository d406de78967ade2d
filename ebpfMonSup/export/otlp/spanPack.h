/* SPDX-License-Identifier: BSD-3-Clause */
/* A span as it stands in a queue: without the unused ends of its texts. */
#ifndef EBPFMON_SPANPACK_H
#define EBPFMON_SPANPACK_H

#include "export/otlp/span.h"

#define EBPFMON_SPAN_PACK_MAX (sizeof(ebpfMonSpan) + 64)

/* Length. */
size_t ebpfMonSpanPack(const ebpfMonSpan *span, uint8_t *buf);
void ebpfMonSpanUnpack(const uint8_t *buf, ebpfMonSpan *span);

#endif
