/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of queries as metrics: those of queries that ask for it ("metrics"), their first rows. One thread. */
#ifndef EBPFMON_OTLPQUERIES_H
#define EBPFMON_OTLPQUERIES_H

#include "export/otlp/otlpItems.h"

/* Copies the rows that are to be sent. Takes the lock of the results. */
void ebpfMonOtlpQueriesRead(ebpfMonOtlpNumbers *numbers);

void ebpfMonOtlpQueriesWrite(ebpfMonOtlpItems *items);

#endif
