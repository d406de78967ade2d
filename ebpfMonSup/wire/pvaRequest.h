/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client sends that has a request number. */
#ifndef EBPFMON_PVAREQUEST_H
#define EBPFMON_PVAREQUEST_H

#include "wire/pvaState.h"

void ebpfMonPvaRequestMessage(pvaState *pva, pvaMsg *msg);

#endif
