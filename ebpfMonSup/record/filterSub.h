/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter record and the filter command: both set the same filter, and the record shows it. */
#ifndef EBPFMON_FILTERSUB_H
#define EBPFMON_FILTERSUB_H

#include "record/filterInputs.h"

/* Puts a filter in force, and writes it to the source records of the filter record. Waits until it is in force, some
 * seconds at most. Before iocInit the filter waits until the filter record processes for the first time. Then only
 * the "inputs" with a set bit are taken from it, and the source records keep the others. 0, or -1: the filter is
 * refused. "text" tells the operator the result. Not from a callback thread, and the caller holds no lock of a
 * record. */
long ebpfMonFilterCommand(const ebpfMonFilter *filter, unsigned inputs, char *text, size_t size);

/* Call this when the monitor has started: processes the filter record, which then shows the filter in force. Threads as
 * above. */
void ebpfMonFilterReprocess(void);

#endif
