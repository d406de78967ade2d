/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server sends that has a request number. */
#ifndef EBPFMON_PVARESPONSE_H
#define EBPFMON_PVARESPONSE_H

#include "wire/pvaState.h"

void ebpfMonPvaResponseMessage(pvaState *pva, pvaMsg *msg);

#endif
