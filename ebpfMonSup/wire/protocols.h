/* SPDX-License-Identifier: BSD-3-Clause */
/* All protocols that a wire knows. */
#ifndef EBPFMON_PROTOCOLS_H
#define EBPFMON_PROTOCOLS_H

#include "wire/protocol.h"

extern const ebpfMonProtocol *const ebpfMonProtocols[];
extern const unsigned ebpfMonProtocolCount;

#endif
