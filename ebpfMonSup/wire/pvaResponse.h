/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server sends that has a request number. */
#ifndef EBPFMON_PVA_RESPONSE_H
#define EBPFMON_PVA_RESPONSE_H

#include "wire/pvaState.h"

void ebpfMonPvaResponseMessage(pvaState *pva, pvaMsg *msg);

#endif
