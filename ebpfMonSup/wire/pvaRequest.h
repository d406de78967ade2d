/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client sends that has a request number. */
#ifndef EBPFMON_PVA_REQUEST_H
#define EBPFMON_PVA_REQUEST_H

#include "wire/pvaState.h"

void ebpfMonPvaRequestMessage(pvaState *pva, pvaMsg *msg);

#endif
