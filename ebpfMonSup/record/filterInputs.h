/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inputs of the filter record (an aSub):
 *   A IOC, B record, C field, D client host, E user: patterns, STRING or CHAR array
 *   F level: its number, or its name as STRING    G slow-chain limit us    H one chain in N    I budget %    J timed %
 */
#ifndef EBPFMON_FILTERINPUTS_H
#define EBPFMON_FILTERINPUTS_H

#include "model/filter.h"

#define EBPFMON_FILTER_INPUTS 10
#define EBPFMON_FILTER_ALL ((1u << EBPFMON_FILTER_INPUTS) - 1) /* a bit each */

struct aSubRecord;

/* One input from text, "why" not. 0 or -1. Any thread. */
int ebpfMonFilterParse(ebpfMonFilter *filter, unsigned input, const char *value, char *why, size_t size);

/* Copies these inputs (a bit each) of another filter. Any thread. */
void ebpfMonFilterCopyInputs(ebpfMonFilter *filter, const ebpfMonFilter *from, unsigned inputs);

/* What the record's inputs say. 0, or -1 and "why". The record is locked. */
int ebpfMonFilterReadInputs(const struct aSubRecord *prec, ebpfMonFilter *filter, char *why, size_t size);

/* Writes a filter to the records that the inputs come from, without processing them, and tells their clients. The
 * record is locked, and its lock set has them all. */
void ebpfMonFilterWriteInputs(const struct aSubRecord *prec, const ebpfMonFilter *filter);

/* Gives each source record that never processed the time of now. Its lock set is held. */
void ebpfMonFilterStampInputs(const struct aSubRecord *prec);

#endif
