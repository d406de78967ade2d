/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter records and the filter command, which must not contradict each other. */
#ifndef EBPFMON_FILTERSUB_H
#define EBPFMON_FILTERSUB_H

#include "model/filter.h"

/* Puts a filter in force and into the records that the filter record takes it from. Before iocInit the
 * records get it when the filter record processes for the first time. 0, or -1; "text" for the operator. */
long ebpfMonFilterCommand(const ebpfMonFilter *filter, char *text, size_t size);

#endif
