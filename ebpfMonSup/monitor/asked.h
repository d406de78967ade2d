/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other threads ask of the target thread: the filter, levels of single IOCs, records whose links were
 * written. Any thread.
 */
#ifndef EBPFMON_ASKED_H
#define EBPFMON_ASKED_H

#include "model/filter.h"
#include "monitor/target.h"

/* "wake" is called whenever something new was asked. */
void ebpfMonAskedInit(void (*wake)(void));

void ebpfMonAskedFilter(const ebpfMonFilter *filter);
void ebpfMonAskedFilterGet(ebpfMonFilter *filter);
int ebpfMonAskedLevel(const char *iocPattern, int level); /* -1: as the filter says; -1 returned: too many rules */
int ebpfMonAskedReference(const char *iocPattern, int on);
void ebpfMonAskedLinks(uint32_t iocId, uint64_t precord); /* links or TSE of a record are being written */

/* --- the target thread's side --- */

/* The filter now; nonzero: it, or a rule, changed since the last call. */
int ebpfMonAskedTake(ebpfMonFilter *filter);
ebpfMonLevel ebpfMonAskedLevelOf(const char *ioc, const ebpfMonFilter *filter, int *reference);

/* Calls "each" for the records whose links are to be read now. Returns seconds until the next one is due. */
double ebpfMonAskedLinksDue(uint64_t now, void (*each)(uint32_t iocId, uint64_t precord));

#endif
