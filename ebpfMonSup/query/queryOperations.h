/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the operations of model/queryOps.h, which shell commands and records call. */
#ifndef EBPFMON_QUERYOPERATIONS_H
#define EBPFMON_QUERYOPERATIONS_H

#include "query/queries.h"

/* Call this once, when the monitor registers itself. */
void ebpfMonQueryOperationsRegister(ebpfMonQueries *queries);

#endif
