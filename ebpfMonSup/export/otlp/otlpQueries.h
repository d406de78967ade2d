/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of queries as metrics: the first rows of those queries that ask for it ("metrics"). One thread. */
#ifndef EBPFMON_OTLPQUERIES_H
#define EBPFMON_OTLPQUERIES_H

#include "export/otlp/otlpItems.h"

/* Copies the rows that are to be sent. Takes the lock of "results". NULL: there are no results. */
void ebpfMonOtlpQueriesRead(ebpfMonOtlpNumbers *numbers, ebpfMonQueryResults *results);

/* Writes the metrics of these rows. */
void ebpfMonOtlpQueriesWrite(ebpfMonOtlpItems *items);

#endif
