/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsTime.h>

#include "common/clock.h"
#include "common/text.h"
#include "query/queryEvents.h"

struct ebpfMonQueryEvents {
    const ebpfMonQuerySpec *spec;
    const ebpfMonQueryNames *names;
    uint64_t count;
    ebpfMonQueryEventRow row[EBPFMON_QUERY_EVENTS_MAX]; /* number n is at n % EBPFMON_QUERY_EVENTS_MAX */
};

ebpfMonQueryEvents *ebpfMonQueryEventsNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names)
{
    ebpfMonQueryEvents *e = calloc(1, sizeof(*e));

    if (e) {
        e->spec = spec;
        e->names = names;
    }
    return e;
}

void ebpfMonQueryEventsFree(ebpfMonQueryEvents *e)
{
    free(e);
}

void ebpfMonQueryEventsAdd(ebpfMonQueryEvents *e, const struct ebpfMonQueryEvent *ev)
{
    const struct ebpfMonQueryPlan *plan = &e->spec->order.plan;
    ebpfMonQueryEventRow *row = &e->row[e->count++ % EBPFMON_QUERY_EVENTS_MAX];
    epicsTimeStamp time = ebpfMonClockWallTime(ev->at);

    epicsTimeToStrftime(row->time, sizeof(row->time), "%Y-%m-%d %H:%M:%S.%09f", &time);
    ebpfMonTextCopyBytes(row->thread, sizeof(row->thread), ev->comm, sizeof(ev->comm));
    row->cpu = ev->cpu;
    row->value = (double)ev->value * e->spec->scale;
    for (unsigned i = 0; i < plan->keys; i++)
        ebpfMonQueryKeyText(&plan->key[i], (const uint8_t *)ev->key + plan->key[i].at, e->names,
                            ebpfMonClockSeconds(), row->key[i], sizeof(row->key[i]));
}

void ebpfMonQueryEventsCopy(const ebpfMonQueryEvents *e, ebpfMonQueryResult *result)
{
    result->eventRows = e->count < EBPFMON_QUERY_EVENTS_MAX ? (unsigned)e->count : EBPFMON_QUERY_EVENTS_MAX;
    for (unsigned i = 0; i < result->eventRows; i++)
        result->event[i] = e->row[(e->count - 1 - i) % EBPFMON_QUERY_EVENTS_MAX];
}
