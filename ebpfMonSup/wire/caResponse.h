/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a Channel Access server. */
#ifndef EBPFMON_CARESPONSE_H
#define EBPFMON_CARESPONSE_H

#include "wire/caState.h"

/* Emits the event of the message, if it has one, and notes what later messages need. */
void ebpfMonCaResponse(ebpfMonCaState *state, const ebpfMonMessage *message, const ebpfMonCaHeader *header);

#endif
