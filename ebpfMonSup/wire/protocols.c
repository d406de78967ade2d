/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/protocols.h"

const ebpfMonProtocol *const ebpfMonProtocols[] = { &ebpfMonCaProtocol, &ebpfMonPvaProtocol };
const unsigned ebpfMonProtocolCount = sizeof ebpfMonProtocols / sizeof ebpfMonProtocols[0];
