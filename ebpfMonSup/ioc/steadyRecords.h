/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steady records: dbProcess() always processes them to their end, at once. They have a type of Base that never
 * processes asynchronously, no device support or a soft one of Base, and nothing that can disable them or have them
 * simulated, but for a put. bpf/steady.bpf.c tells what that is for.
 */
#ifndef EBPFMON_STEADYRECORDS_H
#define EBPFMON_STEADYRECORDS_H

#include "host/memory.h"
#include "ioc/catalogue.h"

typedef struct ebpfMonSteadyRecords ebpfMonSteadyRecords;

/* What is known of the record types of this IOC. "mem" and "cat" must stay until Free. NULL without memory. */
ebpfMonSteadyRecords *ebpfMonSteadyRecordsNew(ebpfMonMem *mem, const ebpfMonCatalogue *cat);
void ebpfMonSteadyRecordsFree(ebpfMonSteadyRecords *s); /* NULL does no harm */

/* Nonzero: this record is steady now. */
int  ebpfMonSteadyRecordsHas(const ebpfMonSteadyRecords *s, uint32_t index);

#endif
