/* SPDX-License-Identifier: BSD-3-Clause */
/* What a Channel Access client says. */
#ifndef EBPFMON_CAREQUEST_H
#define EBPFMON_CAREQUEST_H

#include "wire/caState.h"

void ebpfMonCaRequest(ebpfMonCaState *state, const ebpfMonMessage *message, const ebpfMonCaHeader *header);

#endif
