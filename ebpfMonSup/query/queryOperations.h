/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/queryOps.h. */
#ifndef EBPFMON_QUERYOPERATIONS_H
#define EBPFMON_QUERYOPERATIONS_H

#include "query/queries.h"

/* Once, when the monitor registers itself. */
void ebpfMonQueryOperationsRegister(ebpfMonQueries *queries);

#endif
