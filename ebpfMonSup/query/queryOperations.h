/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of model/queryOps.h, which shell commands and records call. */
#ifndef EBPFMON_QUERYOPERATIONS_H
#define EBPFMON_QUERYOPERATIONS_H

#include "model/queryOps.h"
#include "query/queries.h"

/* Sets *ops. It keeps the pointer "queries". */
void ebpfMonQueryOperationsFill(ebpfMonQueries *queries, ebpfMonQueryOps *ops);

#endif
