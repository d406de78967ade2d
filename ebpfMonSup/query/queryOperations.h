/* SPDX-License-Identifier: BSD-3-Clause */
/* Fills in model/queryOps.h. */
#ifndef EBPFMON_QUERYOPERATIONS_H
#define EBPFMON_QUERYOPERATIONS_H

#include "model/queryOps.h"
#include "query/queries.h"

void ebpfMonQueryOperationsFill(ebpfMonQueries *queries, ebpfMonQueryOps *ops);

#endif
