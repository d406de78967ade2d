/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client asks for when it makes a request: its pvRequest. */
#ifndef EBPFMON_PVAOPTIONS_H
#define EBPFMON_PVAOPTIONS_H

#include "wire/pvaValue.h"

/* As text: "record[process=true]field(value)". */
void ebpfMonPvaOptions(pvaValue *value, const pvaType *type, int *process);

#endif
