/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The published values: all that records and reports show. The monitor writes them and the readers copy them, both
 * under one lock that is held no longer than a copy takes. Afterwards the writer tells the listener which group
 * changed. Knows neither BPF nor records.
 *
 * There is one such struct in a process, of fixed size, under one lock: records, which EPICS makes before any code of
 * the monitor has run, read it, and a record must see the values of one moment. Its parts are in headers by topic,
 * model/…Values.h.
 *
 * Times are epicsTimeStamp, latencies µs, rates per second, costs percent of one core.
 */
#ifndef EBPFMON_PUBLISHED_H
#define EBPFMON_PUBLISHED_H

#include <stdint.h>
#include <epicsTime.h>
#include "model/clientValues.h"
#include "model/deviceValues.h"
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

/* What changes together, and is scanned together. */
typedef enum {
    ebpfMonGroupState,  /* state, losses, costs, packets */
    ebpfMonGroupIocs,
    ebpfMonGroupPuts,       /* all of them: numbers, PUT_LOG */
    ebpfMonGroupClientPuts,
    ebpfMonGroupAutoPuts,
    ebpfMonGroupProc,
    ebpfMonGroupChains, /* and the histogram */
    ebpfMonGroupAsync,
    ebpfMonGroupDevice,
    ebpfMonGroupSlow,
    ebpfMonGroupHeat,   /* heat maps, each ten seconds */
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
    ebpfMonGroupCount
} ebpfMonGroup;

typedef struct {
    epicsTimeStamp time[ebpfMonGroupCount]; /* of the event that changed the group */

    ebpfMonState state;
    char     stateMessage[256];
    ebpfMonState ownState;     /* as ebpfMonPublishedSetState was told; state is Degraded while a thread is stuck */
    char     ownMessage[256];
    int      isMeasured; /* one second has been published since the start: rates, costs and loads are known */
    char     stuck[200];       /* threads that make no progress; empty: none */
    ebpfMonLossValues       losses;
    ebpfMonAuditValues      audit;
    ebpfMonCostValues       costs;
    ebpfMonPacketValues     packets;
    ebpfMonIocValues        iocs;
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
    ebpfMonDeviceValues     devices;
    ebpfMonHealth           health;
    ebpfMonClientValues     clients;
    ebpfMonUsageValues      usage;
} ebpfMonPublished;

/* All functions: any thread. */

/* Locks the published values. Never wait for anything before ebpfMonPublishedUnlock(). */
ebpfMonPublished *ebpfMonPublishedLock(void);
void ebpfMonPublishedUnlock(void);

/* Tells the listener that a group changed. Not under the lock. */
void ebpfMonPublishedNotify(ebpfMonGroup group);
/* "changed" is called by whoever publishes, without the lock; NULL: nobody listens. */
void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group));

/* Sets the state and its message, and tells the listener. A message goes to the error log when it changed and the
 * state is ebpfMonDegraded or worse. */
void ebpfMonPublishedSetState(ebpfMonState state, const char *message);

/* Threads that make no progress: while there are any, the state is Degraded at least, and the message begins with them.
 * "": there are none. */
void ebpfMonPublishedSetStuck(const char *text);

/* Keeps a put, by its time: most are the newest one. Under the lock. */
void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put);
/* The values of the group are of this time, but never of an earlier one than before: an archiver would drop them. Under
 * the lock. */
void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time);
/* The i-th newest put, i = 0 the newest; NULL: there are not so many. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i);
const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i);

/* Asks for scalars of one record; the same name twice gives the same row. Row index, or -1 when full. */
int ebpfMonPublishedAddWatch(const char *record);

/* Chooses the root of the histogram; empty: all. */
void ebpfMonPublishedSelectRoot(const char *record);

/* Chooses the clients that are shown: patterns of IOCs and of PVs, NULL: as before, empty: all. */
void ebpfMonPublishedSelectClients(const char *iocPattern, const char *pvPattern);

/* Keeps a put that is unexpected until it is acknowledged; does nothing with others. */
void ebpfMonPublishedAddUnexpected(const ebpfMonPut *put);
/* The i-th newest one that is open; NULL: there are not so many, or it is not kept any more. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetUnexpected(const ebpfMonPublished *published, unsigned i);
/* The newest one, acknowledged or not; NULL: there was none. Under the lock. */
const ebpfMonPut *ebpfMonPublishedGetNewestUnexpected(const ebpfMonPublished *published);
/* How many there were, which is the number of the newest one. */
uint64_t ebpfMonPublishedCountUnexpected(void);
/* All up to this number have been shown there. */
void ebpfMonPublishedSetUnexpectedShown(ebpfMonShown where, uint64_t number);
/* Acknowledges those that were shown there or by the PVs, none that came later. How many stay open. */
unsigned ebpfMonPublishedAcknowledge(ebpfMonShown where);

#endif
