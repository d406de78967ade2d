/* SPDX-License-Identifier: BSD-3-Clause */
/* Each function returns the row "index" of one list of the published values; NULL: the list has not so many rows.
 * The caller holds the lock of the published values. Only pvTable.c includes this file. */
#ifndef EBPFMON_PVROWS_H
#define EBPFMON_PVROWS_H

#include <dbDefs.h>

#include "model/published.h"

static const void *hostRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : published;
}

static const void *iocRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->iocs.rows ? &published->iocs.ioc[index] : NULL;
}

static const void *putRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetPut(published, index);
}

static const void *clientPutRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetPutOf(published, ebpfMonPutByClient, index);
}

static const void *autoPutRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetPutOf(published, ebpfMonPutAutomatic, index);
}

static const void *procRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->processings.busiestCount ? &published->processings.busiest[index] : NULL;
}

static const void *chainRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->chains.slowestCount ? &published->chains.slowest[index] : NULL;
}

static const void *asyncRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->asyncs.slowestCount ? &published->asyncs.slowest[index] : NULL;
}

static const void *asyncHistRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &published->asyncs.hist[index] : NULL;
}

static const void *histRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &published->chains.hist[index] : NULL;
}

static const void *edgeRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &published->chains.histEdge[index] : NULL;
}

static const void *heatRecordRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HEAT_RECORDS ? &published->heat.record[index] : NULL;
}

static const void *heatRateRow(const ebpfMonPublished *published, unsigned index)
{
    return index < NELEMENTS(published->heat.rate) ? &published->heat.rate[index] : NULL;
}

static const void *heatChainRow(const ebpfMonPublished *published, unsigned index)
{
    return index < NELEMENTS(published->heat.chains) ? &published->heat.chains[index] : NULL;
}

static const void *lostRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->losses.kinds ? &published->losses.by[index] : NULL;
}

static const void *watchRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->watched.count ? &published->watched.row[index] : NULL;
}

static const void *searchRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->searches.names ? &published->searches.name[index] : NULL;
}

static const void *clientRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->searches.clients ? &published->searches.client[index] : NULL;
}

static const void *beaconRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->searches.servers ? &published->searches.server[index] : NULL;
}

static const void *openRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetUnexpected(published, index);
}

/* The newest unexpected put, also if it is acknowledged. */
static const void *unexpectedRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonPublishedGetNewestUnexpected(published);
}

static const void *healthRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->health.iocs ? &published->health.ioc[index] : NULL;
}

static const void *userRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->clients.rows ? &published->clients.row[index] : NULL;
}

static const void *scanRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->health.scans ? &published->health.scan[index] : NULL;
}

static const void *eventRow(const ebpfMonPublished *published, unsigned index)
{
    return index || published->health.events ? ebpfMonHealthEvent(&published->health, index) : EBPFMON_NO_EVENT;
}

static const void *hangRow(const ebpfMonPublished *published, unsigned index)
{
    if (!index && !published->health.hangLines)
        return EBPFMON_NO_HANG;
    return index < published->health.hangLines ? published->health.hangLine[index] : NULL;
}

#endif
