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
#define EBPFMON_FILTER_ALL ((1u << EBPFMON_FILTER_INPUTS) - 1) /* one bit for each input */

struct aSubRecord;

/* Sets one input from text. 0, or -1: "why" says what is wrong. Any thread. */
int ebpfMonFilterParse(ebpfMonFilter *filter, unsigned input, const char *value, char *why, size_t size);

/* Copies the inputs with a set bit from another filter. Any thread. */
void ebpfMonFilterCopyInputs(ebpfMonFilter *filter, const ebpfMonFilter *from, unsigned inputs);

/* Sets back what a client has written to a source record without processing it, and gets these inputs again. The caller
 * holds the lock of the record; its lock set has the source records, too. */
void ebpfMonFilterCheckInputs(struct aSubRecord *prec);

/* Reads all inputs of the record. 0, or -1: "why" says what is wrong. The caller holds the lock of the record. */
int ebpfMonFilterReadInputs(const struct aSubRecord *prec, ebpfMonFilter *filter, char *why, size_t size);

/* Writes a filter to the source records of the inputs without processing them, and posts monitors. The caller holds
 * the lock of the record; its lock set has the source records, too. */
void ebpfMonFilterWriteInputs(const struct aSubRecord *prec, const ebpfMonFilter *filter);

/* Sets the time stamp of each source record that has none. The caller holds the lock of the record. */
void ebpfMonFilterStampInputs(const struct aSubRecord *prec);

#endif
