/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the PVs, and how to read a cell. */
#include <string.h>

#include <alarm.h>

#include "record/pvTable.h"

static const void *boardRow(const ebpfMonBoard *board, unsigned index)
{
    return index ? NULL : board;
}

static const void *iocRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->iocCount ? &board->ioc[index] : NULL;
}

static const void *putRow(const ebpfMonBoard *board, unsigned index)
{
    return ebpfMonBoardPut(board, index);
}

static const void *procRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->procTop ? &board->proc[index] : NULL;
}

static const void *chainRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->chainTop ? &board->chain[index] : NULL;
}

static const void *histRow(const ebpfMonBoard *board, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &board->hist[index] : NULL;
}

static const void *edgeRow(const ebpfMonBoard *board, unsigned index)
{
    return index < EBPFMON_HIST_MAX ? &board->histEdge[index] : NULL;
}

static const void *lostRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->lostKinds ? &board->lost[index] : NULL;
}

static const void *watchRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->watchCount ? &board->watch[index] : NULL;
}

static const void *searchRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->searches.names ? &board->searches.name[index] : NULL;
}

static const void *searchClientRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->searches.clients ? &board->searches.client[index] : NULL;
}

static const void *beaconRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->searches.servers ? &board->searches.server[index] : NULL;
}

static const void *badRow(const ebpfMonBoard *board, unsigned index)
{
    return ebpfMonBoardBadPut(board, index);
}

/* The newest one, acknowledged or not. */
static const void *badLastRow(const ebpfMonBoard *board, unsigned index)
{
    return index || !board->badCount ? NULL : &board->bad[(board->badCount - 1) % EBPFMON_BAD_MAX];
}

static const void *healthRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->health.iocs ? &board->health.ioc[index] : NULL;
}

static const void *scanRow(const ebpfMonBoard *board, unsigned index)
{
    return index < board->health.scans ? &board->health.scan[index] : NULL;
}

static const void *eventRow(const ebpfMonBoard *board, unsigned index)
{
    return index || board->health.events ? ebpfMonHealthEvent(&board->health, index) : EBPFMON_NO_EVENT;
}

static const void *hangRow(const ebpfMonBoard *board, unsigned index)
{
    if (!index && !board->health.hangLines)
        return EBPFMON_NO_HANG;
    return index < board->health.hangLines ? board->health.hangLine[index] : NULL;
}

/* The rows of lost[] have no name of their own. */
#define LOST_AT(member) (offsetof(ebpfMonBoard, lost[0].member) - offsetof(ebpfMonBoard, lost[0]))

#define BOARD(member)  offsetof(ebpfMonBoard, member)
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
    {"STATE",            ebpfMonGroupState,  boardRow, ebpfMonCellInt,      BOARD(state), 1},
    {"STATE_MSG",        ebpfMonGroupState,  boardRow, ebpfMonCellText,     BOARD(stateMsg), 1},
    {"LOST_CNT",         ebpfMonGroupState,  boardRow, ebpfMonCellCount,    BOARD(lostCount)},
    {"LOST_REASONS",       ebpfMonGroupState,  lostRow,  ebpfMonCellText,     LOST_AT(reason)},
    {"LOST_CNTS",          ebpfMonGroupState,  lostRow,  ebpfMonCellCount,    LOST_AT(count)},
    {"COST",             ebpfMonGroupState,  boardRow, ebpfMonCellDouble,   BOARD(cost)},
    {"TRAP_COST",         ebpfMonGroupState,  boardRow, ebpfMonCellDouble,   BOARD(hitCost)},
    {"CPU",              ebpfMonGroupState,  boardRow, ebpfMonCellDouble,   BOARD(cpu)},
    {"MEM",              ebpfMonGroupState,  boardRow, ebpfMonCellDouble,   BOARD(mem)},

    {"FILTER_MATCH_CNT", ebpfMonGroupIocs,   boardRow, ebpfMonCellUnsigned, BOARD(filterMatching)},
    {"IOC_CNT",          ebpfMonGroupIocs,   boardRow, ebpfMonCellUnsigned, BOARD(iocCount)},
    {"IOC_NAMES",        ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(name)},
    {"IOC_PIDS",         ebpfMonGroupIocs,   iocRow,   ebpfMonCellInt,      IOC(pid)},
    {"IOC_VERSIONS",     ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(version)},
    {"IOC_RECORD_CNTS",         ebpfMonGroupIocs,   iocRow,   ebpfMonCellUnsigned, IOC(records)},
    {"IOC_LEVELS",       ebpfMonGroupIocs,   iocRow,   ebpfMonCellLevel,    IOC(level)},
    {"IOC_NOTES",        ebpfMonGroupIocs,   iocRow,   ebpfMonCellText,     IOC(note)},
    {"IOC_COSTS",      ebpfMonGroupIocs,   iocRow,   ebpfMonCellDouble,   IOC(cost)},

    {"PUT_CNT",          ebpfMonGroupPuts,   boardRow, ebpfMonCellCount,    BOARD(putCount)},
    {"PUT_DENIED_CNT",   ebpfMonGroupPuts,   boardRow, ebpfMonCellCount,    BOARD(putDenied)},
    {"PUT_RATE",         ebpfMonGroupPuts,   boardRow, ebpfMonCellDouble,   BOARD(putRate)},
    {"PUT_LOG",          ebpfMonGroupPuts,   putRow,   ebpfMonCellPutLine,  0},
    {"PUT_TIMES",        ebpfMonGroupPuts,   putRow,   ebpfMonCellTime,     PUT(time)},
    {"PUT_PVS",          ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(pv)},
    {"PUT_VALUES",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(val)},
    {"PUT_OLD_VALUES",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(old)},
    {"PUT_WRITERS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(who)},
    {"PUT_IOCS",         ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(ioc)},

    {"PUT_LAST_CAPUTLOG",     ebpfMonGroupPuts,   boardRow, ebpfMonCellText,     BOARD(putCaPutLog)},
    {"LOG_STATE",        ebpfMonGroupLog,    boardRow, ebpfMonCellInt,      BOARD(logState), 1},
    {"LOG_MSG",          ebpfMonGroupLog,    boardRow, ebpfMonCellText,     BOARD(logMsg), 1},
    {"LOG_LINE_CNT",          ebpfMonGroupLog,    boardRow, ebpfMonCellCount,    BOARD(logCount), 1},
    {"LOG_LOST_CNT",     ebpfMonGroupLog,    boardRow, ebpfMonCellCount,    BOARD(logLost), 1},
    {"LOG_QUEUE_LOAD",        ebpfMonGroupLog,    boardRow, ebpfMonCellDouble,   BOARD(logQueue), 1},
    {"OTLP_STATE",       ebpfMonGroupOtlp,   boardRow, ebpfMonCellInt,      BOARD(otlpState), 1},
    {"OTLP_MSG",         ebpfMonGroupOtlp,   boardRow, ebpfMonCellText,     BOARD(otlpMsg), 1},
    {"OTLP_SENT_CNT",    ebpfMonGroupOtlp,   boardRow, ebpfMonCellCount,    BOARD(otlpSent), 1},
    {"OTLP_LOST_CNT",    ebpfMonGroupOtlp,   boardRow, ebpfMonCellCount,    BOARD(otlpLost), 1},
    {"OTLP_RATE",        ebpfMonGroupOtlp,   boardRow, ebpfMonCellDouble,   BOARD(otlpRate), 1},
    {"OTLP_QUEUE_LOAD",       ebpfMonGroupOtlp,   boardRow, ebpfMonCellDouble,   BOARD(otlpQueue), 1},
    {"PUT_BAD_FLAGS",     ebpfMonGroupPuts,   putRow,   ebpfMonCellInt,      PUT(unexpected)},
    {"PUT_REASONS",        ebpfMonGroupPuts,   putRow,   ebpfMonCellText,     PUT(rule)},

    /* What is open stays in alarm when the monitor ends, or has none to watch. */
    {"PUT_BAD_CNT",      ebpfMonGroupBad,    boardRow, ebpfMonCellCount,    BOARD(badCount), 1},
    {"PUT_BAD_OPEN_CNT",     ebpfMonGroupBad,    boardRow, ebpfMonCellInt,      BOARD(badOpen), 1},
    {"PUT_BAD_LAST",     ebpfMonGroupBad,    badLastRow, ebpfMonCellPutLine, 0, 1},
    {"PUT_BAD_REASON",      ebpfMonGroupBad,    badLastRow, ebpfMonCellText,   PUT(rule), 1},
    {"PUT_BAD_LOG",      ebpfMonGroupBad,    badRow,   ebpfMonCellPutLine,  0, 1},
    {"PUT_BAD_TIMES",    ebpfMonGroupBad,    badRow,   ebpfMonCellTime,     PUT(time), 1},
    {"PUT_BAD_PVS",      ebpfMonGroupBad,    badRow,   ebpfMonCellText,     PUT(pv), 1},
    {"PUT_BAD_VALUES",     ebpfMonGroupBad,    badRow,   ebpfMonCellText,     PUT(val), 1},
    {"PUT_BAD_WRITERS",     ebpfMonGroupBad,    badRow,   ebpfMonCellText,     PUT(who), 1},
    {"PUT_BAD_REASONS",    ebpfMonGroupBad,    badRow,   ebpfMonCellText,     PUT(rule), 1},
    {"RULES_FILE",       ebpfMonGroupRules,  boardRow, ebpfMonCellText,     BOARD(rulesFile), 1},
    {"RULES_CNT",        ebpfMonGroupRules,  boardRow, ebpfMonCellUnsigned, BOARD(rulesCount), 1},
    {"RULES_MSG",        ebpfMonGroupRules,  boardRow, ebpfMonCellText,     BOARD(rulesMsg), 1},

    {"PROC_CNT",         ebpfMonGroupProc,   boardRow, ebpfMonCellCount,    BOARD(procCount)},
    {"PROC_RATE",        ebpfMonGroupProc,   boardRow, ebpfMonCellDouble,   BOARD(procRate)},
    {"PROC_TOP_NAMES",   ebpfMonGroupProc,   procRow,  ebpfMonCellText,     PROC(name)},
    {"PROC_TOP_CNTS",    ebpfMonGroupProc,   procRow,  ebpfMonCellCount,    PROC(count)},
    {"PROC_TOP_RATES",   ebpfMonGroupProc,   procRow,  ebpfMonCellDouble,   PROC(rate)},
    {"PROC_TOP_AT_LEAST", ebpfMonGroupProc,   procRow,  ebpfMonCellInt,      PROC(atLeast)},

    {"CHAIN_TOP_NAMES",  ebpfMonGroupChains, chainRow, ebpfMonCellText,     CHAIN(name)},
    {"CHAIN_TOP_CNTS",   ebpfMonGroupChains, chainRow, ebpfMonCellCount,    CHAIN(count)},
    {"CHAIN_TOP_MEANS",  ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(mean)},
    {"CHAIN_TOP_P99S",   ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(p99)},
    {"CHAIN_TOP_MAXS",   ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(max)},
    {"CHAIN_TOP_LOCK_WAITS",  ebpfMonGroupChains, chainRow, ebpfMonCellDouble,   CHAIN(waitMean)},
    {"CHAIN_HIST",       ebpfMonGroupChains, histRow,  ebpfMonCellDouble,   0},
    {"CHAIN_HIST_EDGES", ebpfMonGroupChains, edgeRow,  ebpfMonCellDouble,   0},
    {"CHAIN_LOG",       ebpfMonGroupSlow,   boardRow, ebpfMonCellText,     BOARD(slow)},
    {"CHAIN_LOG_CNT",   ebpfMonGroupSlow,   boardRow, ebpfMonCellCount,    BOARD(slowCount)},

    {"PROC_CNT",         ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(procCount)},
    {"PROC_RATE",        ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(procRate)},
    {"CHAIN_CNT",        ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(chains)},
    {"LAT_MEAN",         ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latMean)},
    {"LAT_P99",          ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latP99)},
    {"LAT_MAX",          ebpfMonGroupWatch,  watchRow, ebpfMonCellDouble,   WATCH(latMax)},
    {"PUT_CNT",          ebpfMonGroupWatch,  watchRow, ebpfMonCellCount,    WATCH(putCount)},
    {"PUT_LAST",         ebpfMonGroupWatch,  watchRow, ebpfMonCellText,     WATCH(putLast)},

    {"SEARCH_CNT",       ebpfMonGroupSearch, boardRow, ebpfMonCellCount,    BOARD(searches.count)},
    {"SEARCH_RATE",      ebpfMonGroupSearch, boardRow, ebpfMonCellDouble,   BOARD(searches.rate)},
    {"SEARCH_LOST_CNT",  ebpfMonGroupSearch, boardRow, ebpfMonCellCount,    BOARD(searches.replaced)},
    {"UNFOUND_CNT",  ebpfMonGroupSearch, boardRow, ebpfMonCellUnsigned, BOARD(searches.never)},
    {"UNFOUND_NAMES",     ebpfMonGroupSearch, searchRow, ebpfMonCellText,    SEARCH(name)},
    {"UNFOUND_CNTS",      ebpfMonGroupSearch, searchRow, ebpfMonCellCount,   SEARCH(count)},
    {"UNFOUND_CLIENTS",      ebpfMonGroupSearch, searchRow, ebpfMonCellText,    SEARCH(who)},
    {"SEARCH_CLIENTS",   ebpfMonGroupSearch, searchClientRow, ebpfMonCellText,     CLIENT(name)},
    {"SEARCH_CLIENT_RATES", ebpfMonGroupSearch, searchClientRow, ebpfMonCellDouble, CLIENT(rate)},
    {"SEARCH_CLIENT_CNTS", ebpfMonGroupSearch, searchClientRow, ebpfMonCellCount,  CLIENT(count)},
    {"SEARCH_CLIENT_UNFOUND_CNTS", ebpfMonGroupSearch, searchClientRow, ebpfMonCellUnsigned, CLIENT(never)},
    {"BEACON_CNT",       ebpfMonGroupSearch, boardRow, ebpfMonCellCount,    BOARD(searches.beacons)},
    {"BEACON_RATE",      ebpfMonGroupSearch, boardRow, ebpfMonCellDouble,   BOARD(searches.beaconRate)},
    {"BEACON_SERVER_CNT", ebpfMonGroupSearch, boardRow, ebpfMonCellUnsigned, BOARD(searches.heard)},
    {"BEACON_SERVERS",   ebpfMonGroupSearch, beaconRow, ebpfMonCellText,    BEACON(name)},
    {"BEACON_RESTART_CNTS",  ebpfMonGroupSearch, beaconRow, ebpfMonCellCount,   BEACON(restarts)},

    {"PACKET_STATE",       ebpfMonGroupState,  boardRow, ebpfMonCellInt,      BOARD(wireState)},
    {"PACKET_RATE",    ebpfMonGroupState,  boardRow, ebpfMonCellDouble,   BOARD(wireRate)},
    {"PACKET_LOST_CNT",    ebpfMonGroupState,  boardRow, ebpfMonCellCount,    BOARD(wireLost)},
    {"PACKET_GAP_CNT",     ebpfMonGroupState,  boardRow, ebpfMonCellCount,    BOARD(wireGaps)},
    {"PACKET_CIRCUIT_CNT",    ebpfMonGroupState,  boardRow, ebpfMonCellUnsigned, BOARD(wireCircuits)},

    {"IOC_HEALTH_NAMES", ebpfMonGroupHealth, healthRow, ebpfMonCellText,    HEALTH(name)},
    {"IOC_CPU_LOADS",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(cpu)},
    {"IOC_MEM_SIZES",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(mem)},
    {"IOC_FILE_CNTS",          ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fds)},
    {"IOC_FILE_LIMITS",    ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(fdLimit)},
    {"IOC_THREAD_CNTS",      ebpfMonGroupHealth, healthRow, ebpfMonCellUnsigned, HEALTH(threads)},
    {"IOC_CLIENT_CNTS",      ebpfMonGroupHealth, healthRow, ebpfMonCellInt,     HEALTH(clients)},
    {"IOC_CHANNEL_CNTS",     ebpfMonGroupHealth, healthRow, ebpfMonCellInt,     HEALTH(channels)},
    {"IOC_UPTIMES",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(uptime)},
    {"IOC_CPU_MAX",      ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.cpuMax)},
    {"IOC_MEM_MAX",      ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.memMax)},
    {"IOC_FILE_MAX",       ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.fdMax)},
    {"IOC_CBLOW_WAITS",       ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[0])},
    {"IOC_CBMEDIUM_WAITS",    ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[1])},
    {"IOC_CBHIGH_WAITS",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(callback[2])},
    {"IOC_SCANONCE_WAITS",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(once)},
    {"IOC_LOCK_HELD_TIMES",         ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(hold)},
    {"IOC_LOCK_HELD_ROOTS",     ebpfMonGroupHealth, healthRow, ebpfMonCellText,    HEALTH(holder)},
    {"IOC_CAS_CPU_LOADS",      ebpfMonGroupHealth, healthRow, ebpfMonCellDouble,  HEALTH(cas)},
    {"IOC_CALLBACK_WAIT_MAX",        ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.callbackMax)},
    {"IOC_SCANONCE_WAIT_MAX",      ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.onceMax)},
    {"IOC_LOCK_HELD_MAX",      ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.holdMax)},
    {"IOC_CAS_CPU_MAX",   ebpfMonGroupHealth, boardRow, ebpfMonCellDouble,   BOARD(health.casMax)},
    {"IOC_GONE_CNT",     ebpfMonGroupHealth, boardRow, ebpfMonCellUnsigned, BOARD(health.gone)},
    {"HANG_CNT",     ebpfMonGroupHealth, boardRow, ebpfMonCellUnsigned, BOARD(health.hangs)},
    {"IOC_RESTART_CNT",  ebpfMonGroupHealth, boardRow, ebpfMonCellCount,    BOARD(health.restarts)},
    {"IOC_EVENTS",       ebpfMonGroupHealth, eventRow, ebpfMonCellText,     0},
    {"HANG_STACKS",      ebpfMonGroupHealth, hangRow,  ebpfMonCellText,     0},
    {"SCAN_IOCS",        ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(ioc)},
    {"SCAN_NAMES",       ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(name)},
    {"SCAN_PERIODS",     ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(period)},
    {"SCAN_PERIOD_MAXS",      ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(worst)},
    {"SCAN_LATE_CNTS",       ebpfMonGroupHealth, scanRow,  ebpfMonCellCount,    SCANS(late)},
    {"SCAN_LOADS",       ebpfMonGroupHealth, scanRow,  ebpfMonCellDouble,   SCANS(busy)},
    {"SCAN_TOP_RECORDS",      ebpfMonGroupHealth, scanRow,  ebpfMonCellText,     SCANS(eater)},
    {"SCAN_LATE_CNT",    ebpfMonGroupHealth, boardRow, ebpfMonCellCount,    BOARD(health.lateCount)},
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
               ebpfMonTextCopy(buf, size, pv->group == ebpfMonGroupBad ? EBPFMON_NO_BAD : EBPFMON_NO_PUT);
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

epicsTimeStamp ebpfMonPvTime(const ebpfMonBoard *board, const ebpfMonPv *pv, const void *row)
{
    if (row && pv->row == putRow)
        return ((const ebpfMonPut *)row)->time;
    if (row && pv->row == watchRow && pv->cell == ebpfMonCellText)
        return ((const ebpfMonWatchRow *)row)->putTime;
    return board->time[pv->group];
}

epicsEnum16 ebpfMonPvSeverity(const ebpfMonBoard *board, const ebpfMonPv *pv)
{
    if (pv->group == ebpfMonGroupBad)
        return board->badOpen ? MAJOR_ALARM : NO_ALARM;
    if (pv->row == eventRow)
        return ebpfMonHealthBad(&board->health) ? MAJOR_ALARM : NO_ALARM;
    if (pv->row == hangRow)
        return board->health.hangs ? MAJOR_ALARM : NO_ALARM;
    if (pv->group == ebpfMonGroupRules && pv->offset == BOARD(rulesMsg))
        return board->rulesRefused ? MINOR_ALARM : NO_ALARM;
    return NO_ALARM;
}

int ebpfMonPvMissing(const ebpfMonBoard *board, const ebpfMonPv *pv, const void *row)
{
    if (pv->row == watchRow)
        return !row || !((const ebpfMonWatchRow *)row)->found;
    if (pv->row == histRow)
        return board->histSel[0] && !board->histFound;
    return 0;
}
