/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the PVs, and how to read a cell. */
#include <stdio.h>
#include <math.h>
#include <string.h>

#include <alarm.h>
#include <dbDefs.h>

#include "model/published.h"
#include "module/modules.h"
#include "record/pvTable.h"

/* Each function returns the row "index" of one list of the published values; NULL: the list has not so many rows. The
 * caller holds the lock of the published values. */
#define ROWS(name, rows, list) \
    static const void *name(const ebpfMonPublished *published, unsigned index) \
    { \
        return index < (rows) ? &published->list[index] : NULL; \
    }
ROWS(iocRow, published->iocs.rows, iocs.ioc)
ROWS(procRow, published->processings.busiestCount, processings.busiest)
ROWS(chainRow, published->chains.slowestCount, chains.slowest)
ROWS(asyncRow, published->asyncs.slowestCount, asyncs.slowest)
ROWS(asyncHistRow, EBPFMON_HIST_MAX, asyncs.hist)
ROWS(histRow, EBPFMON_HIST_MAX, chains.hist)
ROWS(edgeRow, EBPFMON_HIST_MAX, chains.histEdge)
ROWS(heatRecordRow, EBPFMON_HEAT_RECORDS, heat.record)
ROWS(heatRateRow, NELEMENTS(published->heat.rate), heat.rate)
ROWS(heatChainRow, NELEMENTS(published->heat.chains), heat.chains)
ROWS(lostRow, published->losses.kinds, losses.by)
ROWS(watchRow, published->watched.count, watched.row)
ROWS(searchRow, published->searches.names, searches.name)
ROWS(clientRow, published->searches.clients, searches.client)
ROWS(beaconRow, published->searches.servers, searches.server)
ROWS(healthRow, published->health.iocs, health.ioc)
ROWS(scanRow, published->health.scans, health.scan)

static const void *hostRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : published;
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

static const void *openRow(const ebpfMonPublished *published, unsigned index)
{
    return ebpfMonPublishedGetUnexpected(published, index);
}

static const void *watchedRow(const ebpfMonPublished *published, unsigned index)
{
    return index < published->watched.count ? &published->watched.row[index] : NULL;
}

/* The newest unexpected put, also if it is acknowledged. */
static const void *unexpectedRow(const ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonPublishedGetNewestUnexpected(published);
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

#define LOST(member)   offsetof(ebpfMonLossRow, member)
#define HOST(member)   offsetof(ebpfMonPublished, member)
#define IOC(member)    offsetof(ebpfMonIocRow, member)
#define PUT(member)    offsetof(ebpfMonPut, member)
#define PROC(member)   offsetof(ebpfMonProcRow, member)
#define CHAIN(member)  offsetof(ebpfMonChainRow, member)
#define ASYNC(member)  offsetof(ebpfMonAsyncRow, member)
#define WATCH(member)  offsetof(ebpfMonWatchRow, member)
#define SEARCH(member) offsetof(ebpfMonSearchRow, member)
#define CLIENT(member) offsetof(ebpfMonSearchClientRow, member)
#define BEACON(member) offsetof(ebpfMonBeaconRow, member)
#define HEALTH(member) offsetof(ebpfMonIocHealth, member)
#define SCANS(member)  offsetof(ebpfMonScanRow, member)

/* In the order of the files Db/ebpfMonSUBJECT.substitutions, which make the records with these names. */
static const ebpfMonPv table[] = {
    /* The monitor itself. */
    {"STATE", ebpfMonGroupState, hostRow, ebpfMonCellInt, HOST(state), 1, .cause = 1 + HOST(stateMessage)},
    {"STATE_MSG", ebpfMonGroupState, hostRow, ebpfMonCellText, HOST(stateMessage), 1},
    {"OPERATORS", ebpfMonGroupState, hostRow, ebpfMonCellText, HOST(operators), 1},
    {"HOST_STATUS", ebpfMonGroupState, hostRow, ebpfMonCellInt, HOST(host.status), 1, .cause = 1 + HOST(host.text)},
    {"HOST_STATUS_MSG", ebpfMonGroupState, hostRow, ebpfMonCellText, HOST(host.text), 1},
    {"LOST_CNT", ebpfMonGroupState, hostRow, ebpfMonCellCount, HOST(losses.count), .cause = 1 + HOST(losses.newest)},
    {"LOST_REASONS", ebpfMonGroupState, lostRow, ebpfMonCellText, LOST(reason)},
    {"LOST_CNTS", ebpfMonGroupState, lostRow, ebpfMonCellCount, LOST(count)},
    {"AUDIT", ebpfMonGroupState, hostRow, ebpfMonCellText, HOST(audit.text)},
    {"AUDIT_CNT", ebpfMonGroupState, hostRow, ebpfMonCellCount, HOST(audit.count), .cause = 1 + HOST(audit.text)},
    {"COST", ebpfMonGroupState, hostRow, ebpfMonCellDouble, HOST(costs.iocs), .cause = 1 + HOST(costs.most)},
    {"TRAP_COST", ebpfMonGroupState, hostRow, ebpfMonCellDouble, HOST(costs.trapNs)},
    {"CPU", ebpfMonGroupState, hostRow, ebpfMonCellDouble, HOST(costs.cpu)},
    {"MEM", ebpfMonGroupState, hostRow, ebpfMonCellDouble, HOST(costs.memory)},

    /* IOCs, and the filter. */
    {"FILTER_MATCH_CNT", ebpfMonGroupIocs, hostRow, ebpfMonCellUnsigned, HOST(iocs.shown)},
    {"IOC_CNT", ebpfMonGroupIocs, hostRow, ebpfMonCellUnsigned, HOST(iocs.count)},
    {"IOC_NAMES", ebpfMonGroupIocs, iocRow, ebpfMonCellText, IOC(name)},
    {"IOC_PIDS", ebpfMonGroupIocs, iocRow, ebpfMonCellInt, IOC(pid)},
    {"IOC_VERSIONS", ebpfMonGroupIocs, iocRow, ebpfMonCellText, IOC(version)},
    {"IOC_RECORD_CNTS", ebpfMonGroupIocs, iocRow, ebpfMonCellUnsigned, IOC(records)},
    {"IOC_LEVELS", ebpfMonGroupIocs, iocRow, ebpfMonCellLevel, IOC(level)},
    {"IOC_NOTES", ebpfMonGroupIocs, iocRow, ebpfMonCellText, IOC(note)},
    {"IOC_SEVERITIES", ebpfMonGroupIocs, iocRow, ebpfMonCellInt, IOC(severity)},
    {"IOC_COSTS", ebpfMonGroupIocs, iocRow, ebpfMonCellDouble, IOC(cost)},
    {"IOC_TIMED", ebpfMonGroupIocs, iocRow, ebpfMonCellDouble, IOC(timed), .gaps = 1},

    /* Puts. */
    {"PUT_CNT", ebpfMonGroupPuts, hostRow, ebpfMonCellCount, HOST(puts.count)},
    {"PUT_DENIED_CNT", ebpfMonGroupPuts, hostRow, ebpfMonCellCount, HOST(puts.denied)},
    {"AUTO_PUT_CNT", ebpfMonGroupPuts, hostRow, ebpfMonCellCount, HOST(puts.automatic)},
    {"PUT_RATE", ebpfMonGroupPuts, hostRow, ebpfMonCellDouble, HOST(puts.rate)},
    {"PUT_LOG", ebpfMonGroupPuts, putRow, ebpfMonCellPutLine, 0},
    {"PUT_LAST_CAPUTLOG", ebpfMonGroupPuts, hostRow, ebpfMonCellText, HOST(log.caPutLogLine)},
    {"PUT_LAST", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellPutLine, 0},
    {"PUT_TIMES", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellTime, PUT(time)},
    {"PUT_PVS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(pv)},
    {"PUT_VALUES", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(val)},
    {"PUT_OLD_VALUES", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(old)},
    {"PUT_WRITERS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(who)},
    {"PUT_IOCS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(ioc)},
    {"PUT_BAD_FLAGS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellInt, PUT(unexpected)},
    {"PUT_RESULTS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellPutResult, 0},
    {"PUT_REASONS", ebpfMonGroupClientPuts, clientPutRow, ebpfMonCellText, PUT(rule)},
    {"AUTO_PUT_LAST", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellPutLine, 0},
    {"AUTO_PUT_TIMES", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellTime, PUT(time)},
    {"AUTO_PUT_PVS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(pv)},
    {"AUTO_PUT_VALUES", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(val)},
    {"AUTO_PUT_OLD_VALUES", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(old)},
    {"AUTO_PUT_WRITERS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(who)},
    {"AUTO_PUT_ORIGINS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(origin)},
    {"AUTO_PUT_IOCS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(ioc)},
    {"AUTO_PUT_RESULTS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellPutResult, 0},
    {"AUTO_PUT_REASONS", ebpfMonGroupAutoPuts, autoPutRow, ebpfMonCellText, PUT(rule)},

    /* Unexpected puts, and rules. Their values stay valid while the monitor does not run: an open put stays in
     * alarm. */
    {"PUT_BAD_CNT", ebpfMonGroupUnexpected, hostRow, ebpfMonCellCount, HOST(unexpected.count), 1},
    {"PUT_BAD_OPEN_CNT", ebpfMonGroupUnexpected, hostRow, ebpfMonCellInt, HOST(unexpected.open), 1},
    {"PUT_BAD_LAST", ebpfMonGroupUnexpected, unexpectedRow, ebpfMonCellPutLine, 0, 1, .cause = 1 + PUT(rule)},
    {"PUT_BAD_REASON", ebpfMonGroupUnexpected, unexpectedRow, ebpfMonCellText, PUT(rule), 1},
    {"PUT_BAD_LOG", ebpfMonGroupUnexpected, openRow, ebpfMonCellPutLine, 0, 1},
    {"PUT_BAD_TIMES", ebpfMonGroupUnexpected, openRow, ebpfMonCellTime, PUT(time), 1},
    {"PUT_BAD_PVS", ebpfMonGroupUnexpected, openRow, ebpfMonCellText, PUT(pv), 1},
    {"PUT_BAD_VALUES", ebpfMonGroupUnexpected, openRow, ebpfMonCellText, PUT(val), 1},
    {"PUT_BAD_WRITERS", ebpfMonGroupUnexpected, openRow, ebpfMonCellText, PUT(who), 1},
    {"PUT_BAD_REASONS", ebpfMonGroupUnexpected, openRow, ebpfMonCellText, PUT(rule), 1},
    {"RULES_FILE", ebpfMonGroupRules, hostRow, ebpfMonCellText, HOST(rules.file), 1},
    {"RULES_CNT", ebpfMonGroupRules, hostRow, ebpfMonCellUnsigned, HOST(rules.count), 1},
    {"RULES_MSG", ebpfMonGroupRules, hostRow, ebpfMonCellText, HOST(rules.message), 1},

    /* Record processing. */
    {"PROC_CNT", ebpfMonGroupProc, hostRow, ebpfMonCellCount, HOST(processings.count)},
    {"PROC_RATE", ebpfMonGroupProc, hostRow, ebpfMonCellDouble, HOST(processings.rate)},
    {"PROC_TOP_NAMES", ebpfMonGroupProc, procRow, ebpfMonCellText, PROC(name)},
    {"PROC_TOP_CNTS", ebpfMonGroupProc, procRow, ebpfMonCellCount, PROC(count)},
    {"PROC_TOP_RATES", ebpfMonGroupProc, procRow, ebpfMonCellDouble, PROC(rate)},
    {"PROC_TOP_AT_LEAST", ebpfMonGroupProc, procRow, ebpfMonCellInt, PROC(atLeast)},

    /* Chains. */
    {"CHAIN_TOP_NAMES", ebpfMonGroupChains, chainRow, ebpfMonCellText, CHAIN(name)},
    {"CHAIN_TOP_CNTS", ebpfMonGroupChains, chainRow, ebpfMonCellCount, CHAIN(count)},
    {"CHAIN_TOP_MEANS", ebpfMonGroupChains, chainRow, ebpfMonCellDouble, CHAIN(mean)},
    {"CHAIN_TOP_P99S", ebpfMonGroupChains, chainRow, ebpfMonCellDouble, CHAIN(p99)},
    {"CHAIN_TOP_MAXS", ebpfMonGroupChains, chainRow, ebpfMonCellDouble, CHAIN(max)},
    {"CHAIN_TOP_LOCK_WAITS", ebpfMonGroupChains, chainRow, ebpfMonCellDouble, CHAIN(waitMean)},
    {"CHAIN_HIST", ebpfMonGroupChains, histRow, ebpfMonCellDouble, 0},
    {"CHAIN_HIST_EDGES", ebpfMonGroupChains, edgeRow, ebpfMonCellDouble, 0},
    {"CHAIN_P50", ebpfMonGroupChains, hostRow, ebpfMonCellDouble, HOST(chains.histP50)},
    {"CHAIN_P99", ebpfMonGroupChains, hostRow, ebpfMonCellDouble, HOST(chains.histP99)},
    {"CHAIN_MAX", ebpfMonGroupChains, hostRow, ebpfMonCellDouble, HOST(chains.histMax)},
    {"PROC_HEAT", ebpfMonGroupHeat, heatRateRow, ebpfMonCellDouble, 0},
    {"WATCH_NAMES", ebpfMonGroupProc, watchedRow, ebpfMonCellText, WATCH(record)},
    {"PROC_HEAT_NAMES", ebpfMonGroupHeat, heatRecordRow, ebpfMonCellText, 0},
    {"CHAIN_HEAT", ebpfMonGroupHeat, heatChainRow, ebpfMonCellDouble, 0},
    {"CHAIN_LOG", ebpfMonGroupSlow, hostRow, ebpfMonCellLines, HOST(chains.slowText)},
    {"CHAIN_TIMED", ebpfMonGroupIocs, hostRow, ebpfMonCellDouble, HOST(iocs.timed)},
    {"CHAIN_UNTIMED_CNT", ebpfMonGroupIocs, hostRow, ebpfMonCellCount, HOST(iocs.slowUntimed)},
    {"CHAIN_LOG_CNT", ebpfMonGroupSlow, hostRow, ebpfMonCellCount, HOST(chains.slowCount)},

    /* Asynchronous records. */
    {"ASYNC_TOP_NAMES", ebpfMonGroupAsync, asyncRow, ebpfMonCellText, ASYNC(name)},
    {"ASYNC_TOP_CNTS", ebpfMonGroupAsync, asyncRow, ebpfMonCellCount, ASYNC(count)},
    {"ASYNC_TOP_MEANS", ebpfMonGroupAsync, asyncRow, ebpfMonCellDouble, ASYNC(mean)},
    {"ASYNC_TOP_P99S", ebpfMonGroupAsync, asyncRow, ebpfMonCellDouble, ASYNC(p99)},
    {"ASYNC_TOP_MAXS", ebpfMonGroupAsync, asyncRow, ebpfMonCellDouble, ASYNC(max)},
    {"ASYNC_TOP_TIMEOUT_CNTS", ebpfMonGroupAsync, asyncRow, ebpfMonCellCount, ASYNC(timeouts)},
    {"ASYNC_TOP_BUSY_TIMES", ebpfMonGroupAsync, asyncRow, ebpfMonCellDouble, ASYNC(busy)},
    {"ASYNC_HIST", ebpfMonGroupAsync, asyncHistRow, ebpfMonCellDouble, 0},
    {"ASYNC_LATENCY_MAX", ebpfMonGroupAsync, hostRow, ebpfMonCellDouble, HOST(asyncs.latencyMax)},
    {"ASYNC_BUSY_MAX", ebpfMonGroupAsync, hostRow, ebpfMonCellDouble, HOST(asyncs.busyMax)},

    /* Health of the IOCs. */
    {"IOC_HEALTH_NAMES", ebpfMonGroupHealth, healthRow, ebpfMonCellText, HEALTH(name)},
    {"IOC_CPU_LOADS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(cpu), .gaps = 1},
    {"IOC_MEM_SIZES", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(mem)},
    {"IOC_FILE_CNTS", ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fds)},
    {"IOC_FILE_LIMITS", ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fdLimit)},
    {"IOC_THREAD_CNTS", ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(threads)},
    {"IOC_CLIENT_CNTS", ebpfMonGroupHealth, healthRow, ebpfMonCellInt, HEALTH(clients), .gaps = 1},
    {"IOC_CHANNEL_CNTS", ebpfMonGroupHealth, healthRow, ebpfMonCellInt, HEALTH(channels), .gaps = 1},
    {"IOC_UPTIMES", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(uptime)},
    {"IOC_CPU_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.cpuMax)},
    {"IOC_MEM_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.memMax)},
    {"IOC_FILE_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.fdMax.value),
     .cause = 1 + HOST(health.fdMax.cause)},
    {"IOC_CBLOW_WAITS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(callback[0]), .gaps = 1},
    {"IOC_CBMEDIUM_WAITS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(callback[1]), .gaps = 1},
    {"IOC_CBHIGH_WAITS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(callback[2]), .gaps = 1},
    {"IOC_SCANONCE_WAITS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(once), .gaps = 1},
    {"IOC_LOCK_HELD_TIMES", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(hold), .gaps = 1},
    {"IOC_LOCK_HELD_ROOTS", ebpfMonGroupHealth, healthRow, ebpfMonCellText, HEALTH(holder)},
    {"IOC_CAS_CPU_LOADS", ebpfMonGroupHealth, healthRow, ebpfMonCellDouble, HEALTH(cas), .gaps = 1},
    {"IOC_CALLBACK_WAIT_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.callbackMax.value),
     .cause = 1 + HOST(health.callbackMax.cause)},
    {"IOC_SCANONCE_WAIT_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.onceMax.value),
     .cause = 1 + HOST(health.onceMax.cause)},
    {"IOC_LOCK_HELD_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.holdMax.value),
     .cause = 1 + HOST(health.holdMax.cause)},
    {"IOC_CAS_CPU_MAX", ebpfMonGroupHealth, hostRow, ebpfMonCellDouble, HOST(health.casMax)},
    {"IOC_GONE_CNT", ebpfMonGroupHealth, hostRow, ebpfMonCellUnsigned, HOST(health.gone),
     .cause = 1 + HOST(health.goneText)},
    {"HANG_CNT", ebpfMonGroupHealth, hostRow, ebpfMonCellUnsigned, HOST(health.hangs), .cause = 1 + HOST(hangCause)},
    {"IOC_STILL_CNT", ebpfMonGroupHealth, hostRow, ebpfMonCellUnsigned, HOST(health.still),
     .cause = 1 + HOST(health.stillText)},
    {"IOC_RESTART_CNT", ebpfMonGroupHealth, hostRow, ebpfMonCellCount, HOST(health.restarts)},
    {"IOC_EVENTS", ebpfMonGroupHealth, eventRow, ebpfMonCellText, 0},
    {"HANG_STACKS", ebpfMonGroupHealth, hangRow, ebpfMonCellText, 0},
    {"SCAN_IOCS", ebpfMonGroupHealth, scanRow, ebpfMonCellText, SCANS(ioc)},
    {"SCAN_NAMES", ebpfMonGroupHealth, scanRow, ebpfMonCellText, SCANS(name)},
    {"SCAN_PERIODS", ebpfMonGroupHealth, scanRow, ebpfMonCellDouble, SCANS(period)},
    {"SCAN_PERIOD_MAXS", ebpfMonGroupHealth, scanRow, ebpfMonCellDouble, SCANS(worst)},
    {"SCAN_LATE_CNTS", ebpfMonGroupHealth, scanRow, ebpfMonCellCount, SCANS(late)},
    {"SCAN_SEVERITIES", ebpfMonGroupHealth, scanRow, ebpfMonCellInt, SCANS(severity)},
    {"SCAN_LOADS", ebpfMonGroupHealth, scanRow, ebpfMonCellDouble, SCANS(busy)},
    {"SCAN_TOP_RECORDS", ebpfMonGroupHealth, scanRow, ebpfMonCellText, SCANS(topRoot)},
    {"SCAN_LATE_CNT", ebpfMonGroupHealth, hostRow, ebpfMonCellCount, HOST(health.lateCount)},
    {"SCAN_LATE_NOW", ebpfMonGroupHealth, hostRow, ebpfMonCellUnsigned, HOST(health.lateNow)},
    {"SCAN_LATE_MSG", ebpfMonGroupHealth, hostRow, ebpfMonCellText, HOST(health.lateText)},

    /* Packets, searches and beacons. */
    {"PACKET_STATE", ebpfMonGroupState, hostRow, ebpfMonCellInt, HOST(packets.state),
     .cause = 1 + HOST(packets.trouble)},
    {"PACKET_RATE", ebpfMonGroupState, hostRow, ebpfMonCellDouble, HOST(packets.rate)},
    {"PACKET_LOST_CNT", ebpfMonGroupState, hostRow, ebpfMonCellCount, HOST(packets.lost),
     .cause = 1 + HOST(packets.newest)},
    {"TLS_FAILED_CNT", ebpfMonGroupState, hostRow, ebpfMonCellCount, HOST(packets.tlsFailed)},
    {"PACKET_GAP_CNT", ebpfMonGroupState, hostRow, ebpfMonCellCount, HOST(packets.gaps)},
    {"PACKET_CIRCUIT_CNT", ebpfMonGroupState, hostRow, ebpfMonCellUnsigned, HOST(packets.circuits)},
    {"SEARCH_CNT", ebpfMonGroupSearch, hostRow, ebpfMonCellCount, HOST(searches.count)},
    {"SEARCH_RATE", ebpfMonGroupSearch, hostRow, ebpfMonCellDouble, HOST(searches.rate)},
    {"SEARCH_LOST_CNT", ebpfMonGroupSearch, hostRow, ebpfMonCellCount, HOST(searches.replaced)},
    {"UNFOUND_CNT", ebpfMonGroupSearch, hostRow, ebpfMonCellUnsigned, HOST(searches.never)},
    {"UNFOUND_RATE", ebpfMonGroupSearch, hostRow, ebpfMonCellDouble, HOST(searches.neverRate),
     .cause = 1 + HOST(searches.worst)},
    {"UNFOUND_NAMES", ebpfMonGroupSearch, searchRow, ebpfMonCellText, SEARCH(name)},
    {"UNFOUND_CNTS", ebpfMonGroupSearch, searchRow, ebpfMonCellCount, SEARCH(count)},
    {"UNFOUND_CLIENTS", ebpfMonGroupSearch, searchRow, ebpfMonCellText, SEARCH(who)},
    {"SEARCH_CLIENTS", ebpfMonGroupSearch, clientRow, ebpfMonCellText, CLIENT(name)},
    {"SEARCH_CLIENT_RATES", ebpfMonGroupSearch, clientRow, ebpfMonCellDouble, CLIENT(rate)},
    {"SEARCH_CLIENT_CNTS", ebpfMonGroupSearch, clientRow, ebpfMonCellCount, CLIENT(count)},
    {"SEARCH_CLIENT_UNFOUND_CNTS", ebpfMonGroupSearch, clientRow, ebpfMonCellUnsigned, CLIENT(never)},
    {"BEACON_CNT", ebpfMonGroupSearch, hostRow, ebpfMonCellCount, HOST(searches.beacons)},
    {"BEACON_RATE", ebpfMonGroupSearch, hostRow, ebpfMonCellDouble, HOST(searches.beaconRate)},
    {"BEACON_SERVER_CNT", ebpfMonGroupSearch, hostRow, ebpfMonCellUnsigned, HOST(searches.heard)},
    {"BEACON_SERVERS", ebpfMonGroupSearch, beaconRow, ebpfMonCellText, BEACON(name)},
    {"BEACON_RESTART_CNTS", ebpfMonGroupSearch, beaconRow, ebpfMonCellCount, BEACON(restarts)},

    /* Put logs. */
    {"LOG_STATE", ebpfMonGroupLog, hostRow, ebpfMonCellInt, HOST(log.state), 1, .cause = 1 + HOST(log.message)},
    {"LOG_MSG", ebpfMonGroupLog, hostRow, ebpfMonCellText, HOST(log.message), 1},
    {"LOG_LINE_CNT", ebpfMonGroupLog, hostRow, ebpfMonCellCount, HOST(log.written), 1},
    {"LOG_LOST_CNT", ebpfMonGroupLog, hostRow, ebpfMonCellCount, HOST(log.lost), 1, .cause = 1 + HOST(log.lostCause)},
    {"LOG_QUEUE_LOAD", ebpfMonGroupLog, hostRow, ebpfMonCellDouble, HOST(log.queue), 1},

    /* One record: ebpfMonWatch.db. */
    {"PROC_CNT", ebpfMonGroupWatch, watchRow, ebpfMonCellCount, WATCH(procCount)},
    {"PROC_RATE", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(procRate)},
    {"CHAIN_CNT", ebpfMonGroupWatch, watchRow, ebpfMonCellCount, WATCH(chains)},
    {"LAT_MEAN", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(latMean)},
    {"LAT_P99", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(latP99)},
    {"LAT_MAX", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(latMax)},
    {"ASYNC_CNT", ebpfMonGroupWatch, watchRow, ebpfMonCellCount, WATCH(asyncCount)},
    {"ASYNC_MEAN", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(asyncMean)},
    {"ASYNC_P99", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(asyncP99)},
    {"ASYNC_MAX", ebpfMonGroupWatch, watchRow, ebpfMonCellDouble, WATCH(asyncMax)},
    {"PUT_CNT", ebpfMonGroupWatch, watchRow, ebpfMonCellCount, WATCH(putCount)},
    {"PUT_LAST", ebpfMonGroupWatch, watchRow, ebpfMonCellText, WATCH(putLast)},
};

const ebpfMonPv *ebpfMonPvFind(const char *name, int watch)
{
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if ((table[i].row == watchRow) == !!watch && strcmp(table[i].name, name) == 0)
            return &table[i];
    return ebpfMonModulesFindPv(name, watch);
}

int ebpfMonPvIsText(const ebpfMonPv *pv)
{
    return pv->cell >= ebpfMonCellText;
}

int ebpfMonPvIsOfIoc(const ebpfMonPv *pv)
{
    return pv->ofIoc || pv->row == iocRow || pv->row == healthRow;
}

const void *ebpfMonPvIocRow(const ebpfMonPublished *published, const ebpfMonPv *pv, const char *ioc)
{
    size_t name = pv->ofIoc ? pv->ofIoc - 1 : pv->row == iocRow ? IOC(name) : HEALTH(name);
    const void *row;

    for (unsigned i = pv->row == iocRow ? published->iocs.gone : 0; (row = pv->row(published, i)) != NULL; i++)
        if (strcmp((const char *)row + name, ioc) == 0)
            break;
    return row;
}

int ebpfMonPvHasPuts(const ebpfMonPv *pv)
{
    return pv->row == putRow || pv->row == clientPutRow || pv->row == autoPutRow || pv->row == openRow;
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

int ebpfMonPvIsGap(const ebpfMonPv *pv, const void *row)
{
    double value = ebpfMonPvDouble(pv, row);

    return pv->gaps && (isnan(value) || value < 0);
}

int ebpfMonPvText(const ebpfMonPv *pv, const void *row, char *buf, size_t size)
{
    const ebpfMonPut *put = row; /* of a PV with puts */
    const void *at;
    char line[EBPFMON_LINE_SIZE], run[EBPFMON_LINE_SIZE + 100], since[20];
    size_t used;

    buf[0] = 0;
    if (!row) /* for lines of puts, say that there is none: an empty text could be taken for a fault */
        return pv->cell != ebpfMonCellPutLine ? 0 :
               ebpfMonTextCopy(buf, size, pv->group == ebpfMonGroupUnexpected ? EBPFMON_NO_UNEXPECTED : EBPFMON_NO_PUT);
    at = (const char *)row + pv->offset;
    switch (pv->cell) {
    case ebpfMonCellText:
        return ebpfMonTextCopy(buf, size, at);
    case ebpfMonCellLines:
        return ebpfMonTextCopyLines(buf, size, at);
    case ebpfMonCellLevel:
        return ebpfMonTextCopy(buf, size, ebpfMonLevelName(*(const ebpfMonLevel *)at));
    case ebpfMonCellTime:
        if (((const epicsTimeStamp *)at)->secPastEpoch)
            epicsTimeToStrftime(buf, size, "%Y-%m-%d %H:%M:%S.%06f", at);
        return 0;
    case ebpfMonCellPutLine:
        ebpfMonPutLine(row, line, sizeof(line));
        return ebpfMonTextCopy(buf, size, line);
    case ebpfMonCellPutResult:
        used = ebpfMonPutOutcome(put, line, sizeof(line));
        if (put->run.count) {
            epicsTimeToStrftime(since, sizeof(since),
                                epicsTimeDiffInSeconds(&put->time, &put->run.time) < 43200 ? "%H:%M:%S" : "%m-%d %H:%M",
                                &put->run.time);
            snprintf(run, sizeof(run), "x%llu%s%s since %s from %s", (unsigned long long)put->run.count,
                     used ? " " : "", line, since, put->run.first);
        }
        return ebpfMonTextCopy(buf, size, put->run.count ? run : line);
    default:
        return 0;
    }
}

epicsTimeStamp ebpfMonPvTime(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row)
{
    if (pv->offset == HOST(puts.rate) && pv->row == hostRow)
        return published->puts.rateTime;
    if (row && (pv->row == putRow || pv->row == clientPutRow || pv->row == autoPutRow))
        return ((const ebpfMonPut *)row)->time;
    if (row && pv->row == watchRow && pv->cell == ebpfMonCellText)
        return ((const ebpfMonWatchRow *)row)->putTime;
    return published->time[pv->group];
}

epicsEnum16 ebpfMonPvSeverity(const ebpfMonPublished *published, const ebpfMonPv *pv)
{
    const char *row = pv->severity ? pv->row(published, 0) : NULL;

    if (row)
        return (epicsEnum16)*(const int *)(row + pv->severity - 1);
    if (pv->group == ebpfMonGroupUnexpected)
        return published->unexpected.open ? MAJOR_ALARM : NO_ALARM;
    if (pv->row == eventRow)
        return published->health.isEventTrouble && ebpfMonHealthHasTrouble(&published->health) ? MAJOR_ALARM :
               NO_ALARM;
    if (pv->row == hostRow && pv->offset == HOST(health.lateNow))
        return published->health.isFarLate ? MAJOR_ALARM : NO_ALARM; /* else the limit of the record */
    if (pv->row == hostRow && (pv->offset == HOST(host.status) || pv->offset == HOST(host.text)))
        return (epicsEnum16)published->host.status;
    if (pv->row == hostRow && pv->offset == HOST(losses.count))
        return published->losses.isGrowing ? MINOR_ALARM : NO_ALARM;
    if (pv->row == hostRow && pv->offset == HOST(packets.lost))
        return published->packets.newest[0] ? MINOR_ALARM : NO_ALARM;
    if (pv->row == hangRow)
        return published->health.hangs ? MAJOR_ALARM : NO_ALARM;
    if (pv->group == ebpfMonGroupRules && pv->offset == HOST(rules.message))
        return published->rules.refused ? MINOR_ALARM : NO_ALARM;
    return NO_ALARM;
}

const char *ebpfMonPvAlarmText(const ebpfMonPv *pv, const void *row)
{
    const ebpfMonPublished *published = row; /* see hostRow */

    if (pv->cause)
        return (const char *)row + pv->cause - 1;
    if (pv->row != hostRow || pv->offset != HOST(health.lateNow))
        return "";
    return published->lateCause[0] ? published->lateCause : published->health.lateBrief;
}

/* Nonzero: the value is measured over a second, so at the start there is none. 0 would be a wrong value. */
static int isMeasuredPv(const ebpfMonPv *pv)
{
    return pv->row == hostRow && /* its doubles are rates, costs and loads */
           (((pv->group == ebpfMonGroupState || pv->group == ebpfMonGroupPuts) && pv->cell == ebpfMonCellDouble) ||
            pv->group == ebpfMonGroupProc || pv->group == ebpfMonGroupAsync || pv->group == ebpfMonGroupHealth ||
            pv->group == ebpfMonGroupSearch);
}

int ebpfMonPvMissing(const ebpfMonPublished *published, const ebpfMonPv *pv, const void *row)
{
    if (pv->ofRecord)
        return !row;
    if (pv->row == watchRow)
        return !row || !((const ebpfMonWatchRow *)row)->found;
    if (pv->row == histRow)
        return published->chains.selectedRoot[0] && !published->chains.selectedFound;
    if (pv->group == ebpfMonGroupChains && pv->row == hostRow)
        return isnan(ebpfMonPvDouble(pv, row)) || !published->isMeasured; /* no chain yet */
    if (pv->group == ebpfMonGroupHeat)
        return !published->time[ebpfMonGroupHeat].secPastEpoch; /* before the first column */
    if (pv->row == asyncHistRow)
        return published->chains.selectedRoot[0] && !published->asyncs.selectedFound;
    return !published->isMeasured && isMeasuredPv(pv);
}
