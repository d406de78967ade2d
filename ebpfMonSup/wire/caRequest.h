/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a Channel Access client. */
#ifndef EBPFMON_CAREQUEST_H
#define EBPFMON_CAREQUEST_H

#include "wire/caState.h"

/* Emits the event of the message, if it has one, and notes what later messages need. */
void ebpfMonCaRequest(ebpfMonCaState *state, const ebpfMonMessage *message, const ebpfMonCaHeader *header);

#endif
