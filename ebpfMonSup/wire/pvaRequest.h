/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a client that have a request number. */
#ifndef EBPFMON_PVAREQUEST_H
#define EBPFMON_PVAREQUEST_H

#include "wire/pvaState.h"

/* Emits the event of the message, if it has one, and notes what later messages need. */
void ebpfMonPvaRequestMessage(pvaState *pva, pvaMsg *msg);

#endif
