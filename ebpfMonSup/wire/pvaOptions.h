/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a client's request: its pvRequest. */
#ifndef EBPFMON_PVAOPTIONS_H
#define EBPFMON_PVAOPTIONS_H

#include "wire/pvaValue.h"

/* Writes the pvRequest as text: "record[process=true]field(value)". *process is set to nonzero if
 * record._options.process is "true". */
void ebpfMonPvaOptions(pvaValue *value, const pvaType *type, int *process);

#endif
