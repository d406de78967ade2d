/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the operations of model/queryOps.h, which shell commands and records call. */
#ifndef EBPFMON_QUERYOPERATIONS_H
#define EBPFMON_QUERYOPERATIONS_H

#include "model/queryOps.h"
#include "query/queries.h"

void ebpfMonQueryOperationsFill(ebpfMonQueries *queries, ebpfMonQueryOps *ops);

#endif
