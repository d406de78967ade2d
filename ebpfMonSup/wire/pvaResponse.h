/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a server that have a request number. */
#ifndef EBPFMON_PVARESPONSE_H
#define EBPFMON_PVARESPONSE_H

#include "wire/pvaState.h"

/* Emits the event of the message, if it has one, and notes what later messages need. */
void ebpfMonPvaResponseMessage(pvaState *pva, pvaMsg *msg);

#endif
