/* SPDX-License-Identifier: BSD-3-Clause */
#include "topViews.h"

const topTableSpec topTableSpecs[topTables] = {
    [topPuts] = {"PUTS, newest first", {
        {"PUT_TIMES", "time", topAsTime}, {"PUT_PVS", "PV", topAsText}, {"PUT_OLD_VALUES", "old", topAsText},
        {"PUT_VALUES", "new", topAsText}, {"PUT_WRITERS", "writer", topAsText}, {"PUT_IOCS", "IOC", topAsText},
        {"PUT_REASONS", "why unexpected", topAsText}, {"PUT_BAD_FLAGS", "", topAsFlag, topFlagMajor}}, 1, 0},
    [topBadPuts] = {"UNEXPECTED PUTS that nobody acknowledged, newest first", {
        {"PUT_BAD_TIMES", "time", topAsTime}, {"PUT_BAD_PVS", "PV", topAsText}, {"PUT_BAD_VALUES", "new", topAsText},
        {"PUT_BAD_WRITERS", "writer", topAsText}, {"PUT_BAD_REASONS", "why unexpected", topAsText}}, 1, topMajor},
    [topAutoPuts] = {"PUTS BY IOCS (automatic puts), newest first", {
        {"AUTO_PUT_TIMES", "time", topAsTime}, {"AUTO_PUT_PVS", "PV", topAsText},
        {"AUTO_PUT_OLD_VALUES", "old", topAsText}, {"AUTO_PUT_VALUES", "new", topAsText},
        {"AUTO_PUT_WRITERS", "writer", topAsText},
        {"AUTO_PUT_ORIGINS", "link and cause", topAsText}, {"AUTO_PUT_IOCS", "IOC", topAsText},
        {"AUTO_PUT_REASONS", "why unexpected", topAsText}}, 1, 0},
    [topIocs] = {"IOCS", {
        {"IOC_NAMES", "IOC", topAsText}, {"IOC_PIDS", "pid", topAsCount}, {"IOC_VERSIONS", "Base", topAsText},
        {"IOC_RECORD_CNTS", "records", topAsCount}, {"IOC_LEVELS", "level", topAsText},
        {"IOC_COSTS", "cost %", topAsThousandths}, {"IOC_NOTES", "note", topAsText}}, TOP_NONE, 0},
    [topHealth] = {"HEALTH OF IOCS", {
        {"IOC_HEALTH_NAMES", "IOC", topAsText}, {"IOC_CPU_LOADS", "CPU %", topAsTenths},
        {"IOC_MEM_SIZES", "memory MB", topAsTenths}, {"IOC_FILE_CNTS", "files", topAsCount},
        {"IOC_THREAD_CNTS", "threads", topAsCount}, {"IOC_CLIENT_CNTS", "CA clients", topAsCount},
        {"IOC_CHANNEL_CNTS", "channels", topAsCount}, {"IOC_UPTIMES", "up s", topAsCount}}, TOP_NONE, 0},
    [topDelays] = {"LONGEST WAITS, last 10 s", {
        {"IOC_DELAY_NAMES", "IOC", topAsText}, {"IOC_CBLOW_WAITS", "cbLow ms", topAsThousandths},
        {"IOC_CBMEDIUM_WAITS", "cbMedium ms", topAsThousandths}, {"IOC_CBHIGH_WAITS", "cbHigh ms", topAsThousandths},
        {"IOC_SCANONCE_WAITS", "scanOnce ms", topAsThousandths},
        {"IOC_LOCK_HELD_TIMES", "lock held ms", topAsThousandths}, {"IOC_LOCK_HELD_ROOTS", "by chain of", topAsText},
        {"IOC_CAS_CPU_LOADS", "CA server %", topAsTenths}}, 6, 0},
    [topScans] = {"SCAN THREADS", {
        {"SCAN_IOCS", "IOC", topAsText}, {"SCAN_NAMES", "scan", topAsText},
        {"SCAN_PERIODS", "period s", topAsThousandths}, {"SCAN_PERIOD_MAXS", "longest s", topAsThousandths},
        {"SCAN_LATE_CNTS", "late", topAsCount, topFlagMinor}, {"SCAN_LOADS", "load %", topAsTenths},
        {"SCAN_TOP_RECORDS", "slowest record", topAsText}}, 6, 0},
    [topRecords] = {"BUSIEST RECORDS", {
        {"PROC_TOP_NAMES", "record", topAsText}, {"PROC_TOP_CNTS", "processed", topAsCount},
        {"PROC_TOP_RATES", "per s", topAsTenths}, {"PROC_TOP_AT_LEAST", "", topAsFlag, topFlagAtLeast}}, 0, 0},
    [topChains] = {"SLOWEST CHAINS by their first record", {
        {"CHAIN_TOP_NAMES", "record", topAsText}, {"CHAIN_TOP_CNTS", "chains", topAsCount},
        {"CHAIN_TOP_MEANS", "mean us", topAsTenths}, {"CHAIN_TOP_P99S", "99 % us", topAsTenths},
        {"CHAIN_TOP_MAXS", "max us", topAsTenths}, {"CHAIN_TOP_LOCK_WAITS", "lock wait us", topAsTenths}}, 0, 0},
    [topUnfound] = {"NAMES THAT NOBODY HAS", {
        {"UNFOUND_NAMES", "name", topAsText}, {"UNFOUND_CNTS", "searches", topAsCount},
        {"UNFOUND_CLIENTS", "last client", topAsText}}, TOP_NONE, 0},
    [topLosses] = {"LOST EVENTS", {
        {"LOST_REASONS", "reason", topAsText}, {"LOST_CNTS", "lost", topAsCount, topFlagMinor}}, TOP_NONE, 0},
};

const topItemSpec topItemSpecs[] = {
    {"",              "STATE",                 "",   topText,     topAsText,        0},
    {"",              "STATE_MSG.VAL$",        "",   topLongText, topAsText,        0},
    {"IOCs",          "IOC_CNT",               "",   topNumber,   topAsCount,       1},
    {"gone",          "IOC_GONE_CNT",          "",   topNumber,   topAsCount,       1},
    {"restarts",      "IOC_RESTART_CNT",       "",   topNumber,   topAsCount,       1},
    {"hang",          "HANG_CNT",              "",   topNumber,   topAsCount,       1},
    {"late scans",    "SCAN_LATE_NOW",         "",   topNumber,   topAsCount,       1},
    {"cost",          "COST",                  "%",  topNumber,   topAsThousandths, 1},
    {"a trap",        "TRAP_COST",             "ns", topNumber,   topAsCount,       1},
    {"monitor CPU",   "CPU",                   "%",  topNumber,   topAsTenths,      1},
    {"memory",        "MEM",                   "MB", topNumber,   topAsCount,       1},
    {"puts",          "PUT_CNT",               "",   topNumber,   topAsCount,       2},
    {"",              "PUT_RATE",              "/s", topNumber,   topAsTenths,      2},
    {"denied",        "PUT_DENIED_CNT",        "",   topNumber,   topAsCount,       2},
    {"processings",   "PROC_RATE",             "/s", topNumber,   topAsTenths,      2},
    {"unexpected",    "PUT_BAD_OPEN_CNT",      "",   topNumber,   topAsCount,       2},
    {"",              "PUT_BAD_REASON.VAL$",   "",   topLongText, topAsText,        2, 1},
    {"lost",          "LOST_CNT",              "",   topNumber,   topAsCount,       3},
    {"log",           "LOG_STATE",             "",   topText,     topAsText,        3},
    {"lost lines",    "LOG_LOST_CNT",          "",   topNumber,   topAsCount,       3},
    {"OTLP",          "OTLP_STATE",            "",   topText,     topAsText,        3},
    {"lost items",    "OTLP_LOST_CNT",         "",   topNumber,   topAsCount,       3},
    {"RecSync",       "RECSYNC_STATE",         "",   topText,     topAsText,        3},
    {"packets",       "PACKET_STATE",          "",   topText,     topAsText,        3},
    {"lost packets",  "PACKET_LOST_CNT",       "",   topNumber,   topAsCount,       3},
    {"audit:",        "AUDIT.VAL$",            "",   topLongText, topAsText,        3},
};
const unsigned topItems = sizeof(topItemSpecs) / sizeof(topItemSpecs[0]);

const topTextSpec topTextSpecs[topTextCount] = {
    [topEvents] = {"EVENTS OF IOCS, newest first", "IOC_EVENTS"},
    [topStacks] = {"THREADS THAT HANG", "HANG_STACKS"},
    [topKept] = {"KEPT CHAINS, newest first", "CHAIN_LOG"},
};

#define NO_TABLE {TOP_NONE}
#define NO_TEXT  {TOP_NONE}

const topViewSpec topViewSpecs[] = {
    [topViewOverview] = {"overview", 'o', "puts, IOCs, busiest records, slowest chains",
                         {topPuts, topIocs, topRecords, topChains}, NO_TEXT, 1},
    {"shift", 's', "who wrote what, what is unexpected, what is late", {topPuts, topBadPuts, topScans, TOP_NONE},
     NO_TEXT, 0},
    {"puts", 'p', "recent puts of clients", {topPuts, TOP_NONE}, NO_TEXT, 0},
    {"auto", 'a', "recent puts that IOCs made by themselves: links, sequences", {topAutoPuts, TOP_NONE}, NO_TEXT, 0},
    {"iocs", 'i', "IOCs, their health and longest waits", {topIocs, topHealth, topDelays, TOP_NONE},
     {topStacks, topEvents, TOP_NONE}, 0},
    {"records", 'b', "busiest records", {topRecords, TOP_NONE}, NO_TEXT, 0},
    [topViewChains] = {"chains", 'c', "slowest chains and the histogram of latencies", {topChains, TOP_NONE},
                       NO_TEXT, 1},
    {"scans", 'n', "scan threads", {topScans, TOP_NONE}, NO_TEXT, 0},
    {"unexpected", 'u', "unexpected puts that are open", {topBadPuts, TOP_NONE}, NO_TEXT, 0},
    {"kept", 'k', "kept chains, as text", NO_TABLE, {topKept, TOP_NONE}, 0},
    {"losses", 'l', "lost events; names that nobody has", {topLosses, topUnfound, TOP_NONE}, NO_TEXT, 0},
};
const unsigned topViews = sizeof(topViewSpecs) / sizeof(topViewSpecs[0]);
