/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The published values: everything that PVs and reports show. The monitor writes them, and readers copy them. Both do
 * so under one lock, which is held only as long as a copy takes. Then the writer notifies the listener which group has
 * changed. This header knows neither BPF nor records.
 *
 * There is one such struct in a process, with a fixed size and one lock, because the records of Base show it: Base has
 * one database in a process, and a record must see the values of one moment. Its parts are in headers by topic,
 * model/…Values.h.
 *
 * Times are epicsTimeStamp, latencies µs, rates per second, costs percent of one core.
 */
#ifndef EBPFMON_PUBLISHED_H
#define EBPFMON_PUBLISHED_H

#include <stdint.h>
#include <epicsTime.h>
#include "ebpfMonModule.h"
#include "model/clientValues.h"
#include "model/exportValues.h"
#include "model/healthValues.h"
#include "model/heatValues.h"
#include "model/inventoryValues.h"
#include "model/iocValues.h"
#include "model/put.h"
#include "model/putValues.h"
#include "model/recordValues.h"
#include "model/searchValues.h"
#include "model/stateValues.h"
#include "model/usageValues.h"

/* The groups: the values of a group change together, and its PVs process together. */
typedef enum {
    ebpfMonGroupState,  /* state, losses, costs, packets */
    ebpfMonGroupIocs,
    ebpfMonGroupPuts,       /* all puts: counts, PUT_LOG */
    ebpfMonGroupClientPuts,
    ebpfMonGroupAutoPuts,
    ebpfMonGroupProc,
    ebpfMonGroupChains, /* with the histogram */
    ebpfMonGroupAsync,
    ebpfMonGroupSlow,
    ebpfMonGroupHeat,   /* heat maps, every ten seconds */
    ebpfMonGroupWatch,
    ebpfMonGroupSearch,
    ebpfMonGroupLog,    /* state of the logs */
    ebpfMonGroupOtlp,   /* state of OTLP */
    ebpfMonGroupRecSync,
    ebpfMonGroupUnexpected, /* unexpected puts */
    ebpfMonGroupRules,
    ebpfMonGroupHealth,
    ebpfMonGroupClients,
    ebpfMonGroupUsage,
    ebpfMonGroupModules, /* each module has one (ebpfMonModule.h) */
    ebpfMonGroupCount = ebpfMonGroupModules + EBPFMON_MODULES_MAX
} ebpfMonGroup;

typedef struct ebpfMonPublished {
    epicsTimeStamp time[ebpfMonGroupCount]; /* for each group: time of the event that changed it */
    uint64_t       timeAt[ebpfMonGroupCount]; /* … in monotonic ns, of those that ebpfMonPublishedSetTime sets */

    ebpfMonState state;
    char     stateMessage[256];
    ebpfMonState ownState;     /* the state of ebpfMonPublishedSetState; "state" is Degraded while a thread is stuck */
    char     ownMessage[256];
    int      isMeasured; /* nonzero: since the start, one second of all IOCs was published, so rates, costs and loads
                          * are known */
    char     stuck[200];       /* names of threads that make no progress; empty: none */
    ebpfMonHostValues       host;
    ebpfMonLossValues       losses;
    ebpfMonAuditValues      audit;
    ebpfMonCostValues       costs;
    ebpfMonPacketValues     packets;
    ebpfMonIocValues        iocs;
    ebpfMonOtherServerValues others;
    ebpfMonPutValues        puts;
    ebpfMonUnexpectedValues unexpected;
    ebpfMonRuleValues       rules;
    ebpfMonProcValues       processings;
    ebpfMonChainValues      chains;
    ebpfMonHeatValues       heat;
    ebpfMonAsyncValues      asyncs;
    ebpfMonWatchValues      watched;
    ebpfMonSearches         searches;
    ebpfMonLogValues        log;
    ebpfMonOtlpValues       otlp;
    ebpfMonRecSyncValues    recSync;
    ebpfMonHealth           health;
    ebpfMonClientValues     clients;
    ebpfMonUsageValues      usage;
} ebpfMonPublished;

/* All functions: any thread. */

/* Locks the published values. Never wait for anything before ebpfMonPublishedUnlock(). */
ebpfMonPublished *ebpfMonPublishedLock(void);
void ebpfMonPublishedUnlock(void);

/* Notifies the listener that a group has changed. Not under the lock. */
void ebpfMonPublishedNotify(ebpfMonGroup group);
/* Sets the listener. Any thread that publishes calls "changed", without the lock. NULL: nobody listens. */
void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group));

/* Sets the state and its message, and notifies the listener. If they have changed, and the state is ebpfMonDegraded or
 * worse, the message goes to the error log. */
void ebpfMonPublishedSetState(ebpfMonState state, const char *message);

/* Sets the threads that make no progress. While there are any, the state is at least Degraded, and the message names
 * them. "": there are none. */
void ebpfMonPublishedSetStuck(const char *text);

/* Keeps a put in the order of time; most puts are the newest one. Under the lock. */
void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put);
/* Sets the time of a group, but never an earlier time than before, because an archiver would drop the values. "at": the
 * same time in monotonic ns, because the clock may be set back. Under the lock. */
void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time, uint64_t at);
/* The i-th newest put, from 0; of all kinds, or of one kind. NULL: there are not so many. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i);
const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i);

/* Adds a watched record, which has PVs of its own. The same name again gives the same row. Returns its row, or -1: all
 * rows are used, or the name is too long. */
int ebpfMonPublishedAddWatch(const char *record);

/* Selects the root of the histogram; empty: all roots. */
void ebpfMonPublishedSelectRoot(const char *record);

/* Selects the clients that are shown: patterns of IOCs and of PVs. NULL: as before; empty: all. */
void ebpfMonPublishedSelectClients(const char *iocPattern, const char *pvPattern);

/* Keeps an unexpected put until it is acknowledged. Does nothing with other puts. */
void ebpfMonPublishedAddUnexpected(const ebpfMonPut *put);
/* The i-th newest unexpected put that is open, by the time when it was made. NULL: there are not so many, or it is not
 * kept any more. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetUnexpected(const ebpfMonPublished *published, unsigned i);
/* The newest unexpected put that is open; if none is, the newest one. NULL: there was none. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetNewestUnexpected(const ebpfMonPublished *published);
/* The unexpected put that was published last. NULL: there was none. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetLastUnexpected(const ebpfMonPublished *published);
/* The number of unexpected puts so far, which is also the number of the newest one. */
uint64_t ebpfMonPublishedCountUnexpected(void);
/* Notes that all unexpected puts up to this number were shown in this place. */
void ebpfMonPublishedSetUnexpectedShown(ebpfMonShown where, uint64_t number);
/* Acknowledges the unexpected puts that were shown in this place or by the PVs, and none that came later. Returns how
 * many stay open. */
unsigned ebpfMonPublishedAcknowledge(ebpfMonShown where);

#endif
