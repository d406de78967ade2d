/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the PVs, and how to read a cell. */
#include <string.h>

#include <alarm.h>

#include "record/pvTable.h"

static const void *publishedRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : published;
}

static const void *iocRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->iocs.count ? &published->iocs.ioc[index] : NULL;
}

static const void *putRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetPut(published, index);
}

static const void *procRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->processings.busiestCount ? &published->processings.busiest[index] : NULL;
}

static const void *chainRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->chains.slowestCount ? &published->chains.slowest[index] : NULL;
}

static const void *histRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &published->chains.hist[index] : NULL;
}

static const void *edgeRow(const ebpfMonPublished *published, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &published->chains.histEdge[index] : NULL;
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

static const void *searchClientRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->searches.clients ? &published->searches.client[index] : NULL;
}

static const void *beaconRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->searches.servers ? &published->searches.server[index] : NULL;
}

static const void *unexpectedRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetUnexpected(published, index);
}

/* The newest one, acknowledged or not. */
static const void *newestUnexpectedRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonPublishedGetNewestUnexpected(published);
}

static const void *healthRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->health.iocs ? &published->health.ioc[index] : NULL;
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

#define LOSS(member)   offsetof(ebpfMonLossRow, member)
#define PUBLISHED(member)  offsetof(ebpfMonPublished, member)
#define IOC(member)    offsetof(ebpfMonIocRow, member)
#define PUT(member)    offsetof(ebpfMonPut, member)
#define PROC(member)   offsetof(ebpfMonProcRow, member)
#define CHAIN(member)  offsetof(ebpfMonChainRow, member)
#define WATCH(member)  offsetof(ebpfMonWatchRow, member)
#define SEARCH(member) offsetof(ebpfMonSearchRow, member)
#define CLIENT(member) offsetof(ebpfMonSearchClientRow, member)
#define BEACON(member) offsetof(ebpfMonBeaconRow, member)
#define HEALTH(member) offsetof(ebpfMonIocHealth, member)
#define SCANS(member)  offsetof(ebpfMonScanRow, member)

static const ebpfMonPv table[] = {
    {"STATE",            ebpfMonGroupState,  publishedRow, ebpfMonCellInt,      PUBLISHED(state), 1},
    {"STATE_MSG",        ebpfMonGroupState,  publishedRow, ebpfMonCellText,     PUBLISHED(stateMessage), 1},
    {"LOST_CNT",         ebpfMonGroupState,  publishedRow, ebpfMonCellCount,    PUBLISHED(losses.count)},
    {"LOST_NAMES",       ebpfMonGroupState,  lostRow,  ebpfMonCellText,     LOSS(reason)},
    {"LOST_BY",          ebpfMonGroupState,  lostRow,  ebpfMonCellCount,    LOSS(count)},
    {"COST",             ebpfMonGroupState,  publishedRow, ebpfMonCellDouble,   PUBLISHED(costs.iocs)},
    {"HIT_COST",         ebpfMonGroupState,  publishedRow, ebpfMonCellDouble,   PUBLISHED(costs.trapNs)},
    {"CPU",              ebpfMonGroupState,  publishedRow, ebpfMonCellDouble,   PUBLISHED(costs.cpu)},
    {"MEM",              ebpfMonGroupState,  publishedRow, ebpfMonCellDouble,   PUBLISHED(costs.memory)},

    {"FILTER_MATCH_CNT", ebpfMonGroupIocs,   publishedRow, ebpfMonCellUnsigned, PUBLISHED(iocs.recordsShown)},
    {"IOC_CNT",          ebpfMonGroupIocs,   publishedRow, ebpfMonCellUnsigned, PUBLISHED(iocs.count)},
    {"IOC_NAMES",        ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(name)},
    {"IOC_PIDS",         ebpfMonGroupIocs,   iocRow,   ebpfMonCellInt,      IOC(pid)},
    {"IOC_VERSIONS",     ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(version)},
    {"IOC_RECS",         ebpfMonGroupIocs,   iocRow,   ebpfMonCellUnsigned, IOC(records)},
    {"IOC_LEVELS",       ebpfMonGroupIocs,   iocRow,   ebpfMonCellLevel,    IOC(level)},
    {"IOC_NOTES",        ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(note)},
    {"COST_BY_IOC",      ebpfMonGroupIocs,   iocRow,   ebpfMonCellDouble,   IOC(cost)},

    {"PUT_CNT",          ebpfMonGroupPuts,   publishedRow, ebpfMonCellCount,    PUBLISHED(puts.count)},
    {"PUT_DENIED_CNT",   ebpfMonGroupPuts,   publishedRow, ebpfMonCellCount,    PUBLISHED(puts.denied)},
    {"PUT_RATE",         ebpfMonGroupPuts,   publishedRow, ebpfMonCellDouble,   PUBLISHED(puts.rate)},
    {"PUT_LOG",          ebpfMonGroupPuts,   putRow,   ebpfMonCellPutLine,  0},
    {"PUT_TIMES",        ebpfMonGroupPuts,   putRow,   ebpfMonCellTime,     PUT(time)},
    {"PUT_PVS",          ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(pv)},
    {"PUT_VALS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(val)},
    {"PUT_OLDS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(old)},
    {"PUT_WHOS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(who)},
    {"PUT_IOCS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(ioc)},

    {"PUT_CAPUTLOG",     ebpfMonGroupPuts,   publishedRow, ebpfMonCellText,     PUBLISHED(log.caPutLogLine)},
    {"LOG_STATE",        ebpfMonGroupLog,    publishedRow, ebpfMonCellInt,      PUBLISHED(log.state), 1},
    {"LOG_MSG",          ebpfMonGroupLog,    publishedRow, ebpfMonCellText,     PUBLISHED(log.message), 1},
    {"LOG_CNT",          ebpfMonGroupLog,    publishedRow, ebpfMonCellCount,    PUBLISHED(log.written), 1},
    {"LOG_LOST_CNT",     ebpfMonGroupLog,    publishedRow, ebpfMonCellCount,    PUBLISHED(log.lost), 1},
    {"LOG_QUEUE",        ebpfMonGroupLog,    publishedRow, ebpfMonCellDouble,   PUBLISHED(log.queue), 1},
    {"OTLP_STATE",       ebpfMonGroupOtlp,   publishedRow, ebpfMonCellInt,      PUBLISHED(otlp.state), 1},
    {"OTLP_MSG",         ebpfMonGroupOtlp,   publishedRow, ebpfMonCellText,     PUBLISHED(otlp.message), 1},
    {"OTLP_SENT_CNT",    ebpfMonGroupOtlp,   publishedRow, ebpfMonCellCount,    PUBLISHED(otlp.sent), 1},
    {"OTLP_LOST_CNT",    ebpfMonGroupOtlp,   publishedRow, ebpfMonCellCount,    PUBLISHED(otlp.lost), 1},
    {"OTLP_RATE",        ebpfMonGroupOtlp,   publishedRow, ebpfMonCellDouble,   PUBLISHED(otlp.rate), 1},
    {"OTLP_QUEUE",       ebpfMonGroupOtlp,   publishedRow, ebpfMonCellDouble,   PUBLISHED(otlp.queue), 1},
    {"PUT_BADFLAGS",     ebpfMonGroupPuts,   putRow,   ebpfMonCellInt,      PUT(unexpected)},
    {"PUT_RULES",        ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(rule)},

    /* What is open stays in alarm when the monitor ends, or has none to watch. */
    {"PUT_BAD_CNT",      ebpfMonGroupUnexpected,    publishedRow, ebpfMonCellCount,    PUBLISHED(unexpected.count), 1},
    {"PUT_BAD_OPEN",     ebpfMonGroupUnexpected,    publishedRow, ebpfMonCellInt,      PUBLISHED(unexpected.open), 1},
    {"PUT_BAD_LAST",     ebpfMonGroupUnexpected,    newestUnexpectedRow, ebpfMonCellPutLine, 0, 1},
    {"PUT_BAD_WHY",      ebpfMonGroupUnexpected,    newestUnexpectedRow, ebpfMonCellText,   PUT(rule), 1},
    {"PUT_BAD_LOG",      ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellPutLine,  0, 1},
    {"PUT_BAD_TIMES",    ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellTime,     PUT(time), 1},
    {"PUT_BAD_PVS",      ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellText,     PUT(pv), 1},
    {"PUT_BAD_VALS",     ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellText,     PUT(val), 1},
    {"PUT_BAD_WHOS",     ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellText,     PUT(who), 1},
    {"PUT_BAD_RULES",    ebpfMonGroupUnexpected,    unexpectedRow,   ebpfMonCellText,     PUT(rule), 1},
    {"RULES_FILE",       ebpfMonGroupRules,  publishedRow, ebpfMonCellText,     PUBLISHED(rules.file), 1},
    {"RULES_CNT",        ebpfMonGroupRules,  publishedRow, ebpfMonCellUnsigned, PUBLISHED(rules.count), 1},
    {"RULES_MSG",        ebpfMonGroupRules,  publishedRow, ebpfMonCellText,     PUBLISHED(rules.message), 1},

    {"PROC_CNT",         ebpfMonGroupProc,   publishedRow, ebpfMonCellCount,    PUBLISHED(processings.count)},
    {"PROC_RATE",        ebpfMonGroupProc,   publishedRow, ebpfMonCellDouble,   PUBLISHED(processings.rate)},
    {"PROC_TOP_NAMES",   ebpfMonGroupProc,   procRow,  ebpfMonCellText,     PROC(name)},
    {"PROC_TOP_CNTS",    ebpfMonGroupProc,   procRow,  ebpfMonCellCount,    PROC(count)},
    {"PROC_TOP_RATES",   ebpfMonGroupProc,   procRow,  ebpfMonCellDouble,   PROC(rate)},
    {"PROC_TOP_ATLEAST", ebpfMonGroupProc,   procRow,  ebpfMonCellInt,      PROC(atLeast)},

    {"CHAIN_TOP_NAMES",  ebpfMonGroupChains, chainRow, ebpfMonCellText,     CHAIN(name)},
    {"CHAIN_TOP_CNTS",   ebpfMonGroupChains, chainRow, ebpfMonCellCount,    CHAIN(count)},
    {"CHAIN_TOP_MEANS",  ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(mean)},
    {"CHAIN_TOP_P99S",   ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(p99)},
    {"CHAIN_TOP_MAXS",   ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(max)},
    {"CHAIN_TOP_WAITS",  ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(waitMean)},
    {"CHAIN_HIST",       ebpfMonGroupChains, histRow,  ebpfMonCellDouble,   0},
    {"CHAIN_HIST_EDGES", ebpfMonGroupChains, edgeRow,  ebpfMonCellDouble,   0},
    {"CHAIN_SLOW",       ebpfMonGroupSlow,   publishedRow, ebpfMonCellText,     PUBLISHED(chains.slowText)},
    {"CHAIN_SLOW_CNT",   ebpfMonGroupSlow,   publishedRow, ebpfMonCellCount,    PUBLISHED(chains.slowCount)},

    {"PROC_CNT",         ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(procCount)},
    {"PROC_RATE",        ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(procRate)},
    {"CHAIN_CNT",        ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(chains)},
    {"LAT_MEAN",         ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latMean)},
    {"LAT_P99",          ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latP99)},
    {"LAT_MAX",          ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latMax)},
    {"PUT_CNT",          ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(putCount)},
    {"PUT_LAST",         ebpfMonGroupWatch,  watchRow, ebpfMonCellText,     WATCH(putLast)},

    {"SEARCH_CNT",       ebpfMonGroupSearch, publishedRow, ebpfMonCellCount,    PUBLISHED(searches.count)},
    {"SEARCH_RATE",      ebpfMonGroupSearch, publishedRow, ebpfMonCellDouble,   PUBLISHED(searches.rate)},
    {"SEARCH_LOST_CNT",  ebpfMonGroupSearch, publishedRow, ebpfMonCellCount,    PUBLISHED(searches.replaced)},
    {"SEARCH_NAME_CNT",  ebpfMonGroupSearch, publishedRow, ebpfMonCellUnsigned, PUBLISHED(searches.never)},
    {"SEARCH_NAMES",     ebpfMonGroupSearch, searchRow, ebpfMonCellText,    SEARCH(name)},
    {"SEARCH_CNTS",      ebpfMonGroupSearch, searchRow, ebpfMonCellCount,   SEARCH(count)},
    {"SEARCH_WHOS",      ebpfMonGroupSearch, searchRow, ebpfMonCellText,    SEARCH(who)},
    {"SEARCH_CLIENTS",   ebpfMonGroupSearch, searchClientRow, ebpfMonCellText,     CLIENT(name)},
    {"SEARCH_CLIENT_RATES", ebpfMonGroupSearch, searchClientRow, ebpfMonCellDouble, CLIENT(rate)},
    {"SEARCH_CLIENT_CNTS", ebpfMonGroupSearch, searchClientRow, ebpfMonCellCount,  CLIENT(count)},
    {"SEARCH_CLIENT_NEVERS", ebpfMonGroupSearch, searchClientRow, ebpfMonCellUnsigned, CLIENT(never)},
    {"BEACON_CNT",       ebpfMonGroupSearch, publishedRow, ebpfMonCellCount,    PUBLISHED(searches.beacons)},
    {"BEACON_RATE",      ebpfMonGroupSearch, publishedRow, ebpfMonCellDouble,   PUBLISHED(searches.beaconRate)},
    {"BEACON_SERVER_CNT", ebpfMonGroupSearch, publishedRow, ebpfMonCellUnsigned, PUBLISHED(searches.heard)},
    {"BEACON_SERVERS",   ebpfMonGroupSearch, beaconRow, ebpfMonCellText,    BEACON(name)},
    {"BEACON_RESTARTS",  ebpfMonGroupSearch, beaconRow, ebpfMonCellCount,   BEACON(restarts)},

    {"WIRE_STATE",       ebpfMonGroupState,  publishedRow, ebpfMonCellInt,      PUBLISHED(packets.state)},
    {"WIRE_PKT_RATE",    ebpfMonGroupState,  publishedRow, ebpfMonCellDouble,   PUBLISHED(packets.rate)},
    {"WIRE_LOST_CNT",    ebpfMonGroupState,  publishedRow, ebpfMonCellCount,    PUBLISHED(packets.lost)},
    {"WIRE_GAP_CNT",     ebpfMonGroupState,  publishedRow, ebpfMonCellCount,    PUBLISHED(packets.gaps)},
    {"WIRE_CIRCUITS",    ebpfMonGroupState,  publishedRow, ebpfMonCellUnsigned, PUBLISHED(packets.circuits)},

    {"IOC_HEALTH_NAMES", ebpfMonGroupHealth, healthRow, ebpfMonCellText,    HEALTH(name)},
    {"IOC_CPUS",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(cpu)},
    {"IOC_MEMS",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(mem)},
    {"IOC_FDS",          ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fds)},
    {"IOC_FD_LIMITS",    ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fdLimit)},
    {"IOC_THREADS",      ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(threads)},
    {"IOC_CLIENTS",      ebpfMonGroupHealth, healthRow, ebpfMonCellInt,     HEALTH(clients)},
    {"IOC_CHANNELS",     ebpfMonGroupHealth, healthRow, ebpfMonCellInt,     HEALTH(channels)},
    {"IOC_UPTIMES",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(uptime)},
    {"IOC_CPU_MAX",      ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.cpuMax)},
    {"IOC_MEM_MAX",      ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.memMax)},
    {"IOC_FD_MAX",       ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.fdMax)},
    {"IOC_CB_LOWS",       ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[0])},
    {"IOC_CB_MEDIUMS",    ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[1])},
    {"IOC_CB_HIGHS",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[2])},
    {"IOC_ONCES",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(once)},
    {"IOC_HOLDS",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(hold)},
    {"IOC_HOLD_RECS",     ebpfMonGroupHealth, healthRow, ebpfMonCellText,    HEALTH(holder)},
    {"IOC_CAS_CPUS",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(cas)},
    {"IOC_CB_MAX",        ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.callbackMax)},
    {"IOC_ONCE_MAX",      ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.onceMax)},
    {"IOC_HOLD_MAX",      ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.holdMax)},
    {"IOC_CAS_CPU_MAX",   ebpfMonGroupHealth, publishedRow, ebpfMonCellDouble,   PUBLISHED(health.casMax)},
    {"IOC_GONE_CNT",     ebpfMonGroupHealth, publishedRow, ebpfMonCellUnsigned, PUBLISHED(health.gone)},
    {"IOC_HANG_CNT",     ebpfMonGroupHealth, publishedRow, ebpfMonCellUnsigned, PUBLISHED(health.hangs)},
    {"IOC_RESTART_CNT",  ebpfMonGroupHealth, publishedRow, ebpfMonCellCount,    PUBLISHED(health.restarts)},
    {"IOC_EVENTS",       ebpfMonGroupHealth, eventRow, ebpfMonCellText,     0},
    {"HANG_STACKS",      ebpfMonGroupHealth, hangRow,  ebpfMonCellText,     0},
    {"SCAN_IOCS",        ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(ioc)},
    {"SCAN_NAMES",       ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(name)},
    {"SCAN_PERIODS",     ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(period)},
    {"SCAN_WORSTS",      ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(worst)},
    {"SCAN_LATES",       ebpfMonGroupHealth, scanRow,  ebpfMonCellCount,    SCANS(late)},
    {"SCAN_BUSYS",       ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(busy)},
    {"SCAN_EATERS",      ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(topRoot)},
    {"SCAN_LATE_CNT",    ebpfMonGroupHealth, publishedRow, ebpfMonCellCount,    PUBLISHED(health.lateCount)},
};

const ebpfMonPv *ebpfMonPvFind(const char *name, int watch)
{
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if ((table[i].row == watchRow) == !!watch && strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

int ebpfMonPvIsText(const ebpfMonPv *pv)
{
    return pv->cell >= ebpfMonCellText;
}

int64_t ebpfMonPvInteger(const ebpfMonPv *pv, const void *row)
{
    const void *at = (const char *)row + pv->offset;

    switch (pv->cell) {
    case ebpfMonCellInt:
        return *(const int *)at;
    case ebpfMonCellUnsigned:
        return *(const unsigned *)at;
    case ebpfMonCellCount:
        return (int64_t)*(const uint64_t *)at;
    case ebpfMonCellDouble:
        return (int64_t)*(const double *)at;
    default:
        return 0;
    }
}

double ebpfMonPvDouble(const ebpfMonPv *pv, const void *row)
{
    if (pv->cell == ebpfMonCellDouble)
        return *(const double *)((const char *)row + pv->offset);
    return (double)ebpfMonPvInteger(pv, row);
}

int ebpfMonPvText(const ebpfMonPv *pv, const void *row, char *buf, size_t size)
{
    const void *at;
    char line[EBPFMON_LINE_SIZE];

    buf[0] = 0;
    if (!row) /* an empty line could as well be a fault */
        return pv->cell != ebpfMonCellPutLine ? 0 :
               ebpfMonTextCopy(buf, size, pv->group == ebpfMonGroupUnexpected ? EBPFMON_NO_UNEXPECTED : EBPFMON_NO_PUT);
    at = (const char *)row + pv->offset;
    switch (pv->cell) {
    case ebpfMonCellText:
        return ebpfMonTextCopy(buf, size, at);
    case ebpfMonCellLevel:
        return ebpfMonTextCopy(buf, size, ebpfMonLevelName(*(const ebpfMonLevel *)at));
    case ebpfMonCellTime:
        epicsTimeToStrftime(buf, size, "%Y-%m-%d %H:%M:%S.%06f", at);
        return 0;
    case ebpfMonCellPutLine:
        ebpfMonPutLine(row, line, sizeof(line));
        return ebpfMonTextCopy(buf, size, line);
    default:
        return 0;
    }
}

epicsTimeStamp ebpfMonPvTime(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row)
{
    if (row && pv->row == putRow)
        return ((const ebpfMonPut *)row)->time;
    if (row && pv->row == watchRow && pv->cell == ebpfMonCellText)
        return ((const ebpfMonWatchRow *)row)->putTime;
    return published->time[pv->group];
}

epicsEnum16 ebpfMonPvSeverity(const ebpfMonPublished *published, const ebpfMonPv *pv)
{
    if (pv->group == ebpfMonGroupUnexpected)
        return published->unexpected.open ? MAJOR_ALARM : NO_ALARM;
    if (pv->row == eventRow)
        return ebpfMonHealthHasTrouble(&published->health) ? MAJOR_ALARM : NO_ALARM;
    if (pv->row == hangRow)
        return published->health.hangs ? MAJOR_ALARM : NO_ALARM;
    if (pv->group == ebpfMonGroupRules && pv->offset == PUBLISHED(rules.message))
        return published->rules.refused ? MINOR_ALARM : NO_ALARM;
    return NO_ALARM;
}

int ebpfMonPvMissing(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row)
{
    if (pv->row == watchRow)
        return !row || !((const ebpfMonWatchRow *)row)->found;
    if (pv->row == histRow)
        return published->chains.selectedRoot[0] && !published->chains.selectedFound;
    return 0;
}
