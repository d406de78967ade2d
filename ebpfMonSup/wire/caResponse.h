/* SPDX-License-Identifier: BSD-3-Clause */
/* What a Channel Access server says. */
#ifndef EBPFMON_CARESPONSE_H
#define EBPFMON_CARESPONSE_H

#include "wire/caState.h"

void ebpfMonCaResponse(ebpfMonCaState *state, const ebpfMonMessage *message, const ebpfMonCaHeader *header);

#endif
