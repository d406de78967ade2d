/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the history takes from the published values: each minute the figures of each IOC and of the records that cost
 * most, so that before and after can be compared; and changes that no event tells: late scans, levels, clients,
 * searches that nobody answers, restarts of servers. One thread.
 */
#ifndef EBPFMON_HISTORYMINUTES_H
#define EBPFMON_HISTORYMINUTES_H

#include <stdint.h>

#include "clients/clientReport.h"
#include "model/published.h"

typedef struct ebpfMonHistoryMinutes ebpfMonHistoryMinutes;

/* How the event of a scan that is far too late begins. */
#define EBPFMON_HISTORY_FAR_LATE "scan takes more than twice its period: "

/* Gets a row; "automatic", "kind", "ioc", "pv" and "value" as in historyStore.h. Called under the lock of the published
 * values. */
typedef void (*ebpfMonHistoryMinuteFn)(void *arg, int automatic, const char *kind, const char *ioc, const char *pv,
                                       const char *value);

/* NULL without memory. Never freed. */
ebpfMonHistoryMinutes *ebpfMonHistoryMinutesNew(ebpfMonHistoryMinuteFn add, void *arg);

/* Each second, or less often; "clients" may be NULL; "now": monotonic ns. Under the lock of the published values. */
void ebpfMonHistoryMinutesLook(ebpfMonHistoryMinutes *minutes, const ebpfMonPublished *published,
                               const ebpfMonClientValues *clients, uint64_t now);

#endif
