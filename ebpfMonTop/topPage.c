/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <epicsStdio.h>
#include <epicsTime.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "topPage.h"

/* --- views --- */

#define TOP_HEADER_LINES 4

typedef struct {
    const char *title, *name;
    int isWrapped;       /* on a screen a long line becomes several */
} topTextSpec;

static const topTableSpec topTableSpecs[topTables] = {
    [topPuts] = {"PUTS, newest first", {
        {"PUT_TIMES", "time", topAsTime}, {"PUT_PVS", "PV", topAsText, .fit = topFitKeep},
        {"PUT_OLD_VALUES", "old", topAsText, .fit = topFitFirst}, {"PUT_VALUES", "new", topAsText},
        {"PUT_WRITERS", "writer", topAsText}, {"PUT_IOCS", "IOC", topAsText, .fit = topFitFirst},
        {"PUT_RESULTS", "result", topAsText, topFlagResult},
        {"PUT_REASONS", "why unexpected", topAsText, .fit = topFitFirst},
        {"PUT_BAD_FLAGS", "", topAsFlag, topFlagMajor}}, 1, 0},
    [topBadPuts] = {"UNEXPECTED PUTS that nobody acknowledged, newest first", {
        {"PUT_BAD_TIMES", "time", topAsTime}, {"PUT_BAD_PVS", "PV", topAsText, .fit = topFitKeep},
        {"PUT_BAD_VALUES", "new", topAsText}, {"PUT_BAD_WRITERS", "writer", topAsText},
        {"PUT_BAD_REASONS", "why unexpected", topAsText, .fit = topFitKeep}}, 1, topMajor},
    [topAutoPuts] = {"PUTS BY IOCS, newest first", {
        {"AUTO_PUT_TIMES", "time", topAsTime}, {"AUTO_PUT_PVS", "PV", topAsText, .fit = topFitKeep},
        {"AUTO_PUT_OLD_VALUES", "old", topAsText, .fit = topFitFirst}, {"AUTO_PUT_VALUES", "new", topAsText},
        {"AUTO_PUT_WRITERS", "writer", topAsText, .fit = topFitFirst},
        {"AUTO_PUT_ORIGINS", "link and cause", topAsText}, {"AUTO_PUT_IOCS", "IOC", topAsText, .fit = topFitFirst},
        {"AUTO_PUT_RESULTS", "result", topAsText, topFlagResult},
        {"AUTO_PUT_REASONS", "why unexpected", topAsText, .fit = topFitFirst}}, 1, 0},
    [topIocs] = {"IOCS", {
        {"IOC_NAMES", "IOC", topAsText}, {"IOC_PIDS", "pid", topAsCount, .fit = topFitFirst},
        {"IOC_VERSIONS", "Base", topAsText, .fit = topFitFirst}, {"IOC_RECORD_CNTS", "records", topAsCount},
        {"IOC_LEVELS", "level", topAsText}, {"IOC_COSTS", "cost %", topAsThousandths, .fit = topFitFirst},
        {"IOC_NOTES", "note", topAsText, .fit = topFitKeep},
        {"IOC_SEVERITIES", "", topAsFlag, topFlagSeverity}}, TOP_NONE, 0},
    [topHealth] = {"HEALTH OF IOCS", {
        {"IOC_HEALTH_NAMES", "IOC", topAsText, .fit = topFitKeep}, {"IOC_CPU_LOADS", "CPU %", topAsTenths},
        {"IOC_MEM_SIZES", "memory MB", topAsTenths}, {"IOC_FILE_CNTS", "files", topAsCount},
        {"IOC_THREAD_CNTS", "threads", topAsCount}, {"IOC_CLIENT_CNTS", "CA clients", topAsCount},
        {"IOC_CHANNEL_CNTS", "channels", topAsCount, .fit = topFitFirst},
        {"IOC_UPTIMES", "up s", topAsCount}}, TOP_NONE, 0},
    [topDelays] = {"LONGEST WAITS, last 10 s", {
        {"IOC_DELAY_NAMES", "IOC", topAsText, .fit = topFitKeep}, {"IOC_CBLOW_WAITS", "cbLow ms", topAsThousandths},
        {"IOC_CBMEDIUM_WAITS", "cbMedium ms", topAsThousandths, .fit = topFitFirst},
        {"IOC_CBHIGH_WAITS", "cbHigh ms", topAsThousandths},
        {"IOC_SCANONCE_WAITS", "scanOnce ms", topAsThousandths, .fit = topFitFirst},
        {"IOC_LOCK_HELD_TIMES", "lock held ms", topAsThousandths},
        {"IOC_LOCK_HELD_ROOTS", "by chain of", topAsText, .fit = topFitKeep},
        {"IOC_CAS_CPU_LOADS", "CA server %", topAsTenths, .fit = topFitFirst}}, 6, 0},
    [topScans] = {"SCAN THREADS", {
        {"SCAN_IOCS", "IOC", topAsText}, {"SCAN_NAMES", "scan", topAsText},
        {"SCAN_PERIODS", "period s", topAsThousandths},
        {"SCAN_PERIOD_MAXS", "longest s", topAsThousandths, .fit = topFitFirst},
        {"SCAN_LATE_CNTS", "late", topAsCount}, {"SCAN_LOADS", "load %", topAsTenths},
        {"SCAN_TOP_RECORDS", "slowest record", topAsText, .fit = topFitKeep},
        {"SCAN_SEVERITIES", "", topAsFlag, topFlagSeverity}}, 6, 0},
    [topRecords] = {"BUSIEST RECORDS", {
        {"PROC_TOP_NAMES", "record", topAsText}, {"PROC_TOP_CNTS", "processed", topAsCount},
        {"PROC_TOP_RATES", "per s", topAsTenths}, {"PROC_TOP_AT_LEAST", "", topAsFlag, topFlagAtLeast}}, 0, 0},
    [topChains] = {"SLOWEST CHAINS by their first record", {
        {"CHAIN_TOP_NAMES", "record", topAsText}, {"CHAIN_TOP_CNTS", "chains", topAsCount},
        {"CHAIN_TOP_MEANS", "mean ms", topAsMillis}, {"CHAIN_TOP_P99S", "99 % ms", topAsMillis},
        {"CHAIN_TOP_MAXS", "max ms", topAsMillis}, {"CHAIN_TOP_LOCK_WAITS", "lock wait ms", topAsMillis}}, 0, 0},
    [topUnfound] = {"NAMES THAT NOBODY HAS", {
        {"UNFOUND_NAMES", "name", topAsText}, {"UNFOUND_CNTS", "searches", topAsCount},
        {"UNFOUND_CLIENTS", "last client", topAsText}}, TOP_NONE, 0},
    [topSubscriptions] = {"SUBSCRIPTIONS, the worst first", {
        {"SUBSCRIPTION_PVS", "PV", topAsText, .fit = topFitKeep},
        {"SUBSCRIPTION_STATES", "what is in the way", topAsText}, {"SUBSCRIPTION_CLIENTS", "client", topAsText},
        {"SUBSCRIPTION_PROCESSES", "process", topAsText}, {"SUBSCRIPTION_RATES", "per s", topAsTenths},
        {"SUBSCRIPTION_MERGED_CNTS", "merged", topAsCount, .fit = topFitFirst},
        {"SUBSCRIPTION_WAITING_CNTS", "wait", topAsCount},
        {"SUBSCRIPTION_UNSENTS", "unsent B", topAsCount, .fit = topFitFirst}}, TOP_NONE, 0},
    [topLosses] = {"LOST EVENTS", {
        {"LOST_REASONS", "reason", topAsText}, {"LOST_CNTS", "lost", topAsCount, topFlagMinor}}, TOP_NONE, 0},
};

const topItemSpec topItemSpecs[] = {
    {"",             "STATE",                  "",   topText,     topAsText,        0, topAlways},
    {"",             "HOST_STATUS_MSG.VAL$",   "",   topLongText, topAsText,        0, topAlways},
    {"IOCs",         "IOC_CNT",                "",   topNumber,   topAsCount,       1, topAlways},
    {"gone",         "IOC_GONE_CNT",           "",   topNumber,   topAsCount,       1},
    {"stand still",  "IOC_STILL_CNT",          "",   topNumber,   topAsCount,       1},
    {"restarts",     "IOC_RESTART_CNT",        "",   topNumber,   topAsCount,       1},
    {"hang",         "HANG_CNT",               "",   topNumber,   topAsCount,       1},
    {"late scans",   "SCAN_LATE_NOW",          "",   topNumber,   topAsCount,       1},
    {"cost",         "COST",                   "%",  topNumber,   topAsThousandths, 1, topAlways},
    {"monitor CPU",  "CPU",                    "%",  topNumber,   topAsTenths,      1, topAlways},
    {"memory",       "MEM",                    "MB", topNumber,   topAsCount,       1},
    {"puts",         "PUT_CNT",                "",   topNumber,   topAsCount,       2, topAlways},
    {"",             "PUT_RATE",               "/s", topNumber,   topAsTenths,      2, topAlways},
    {"denied",       "PUT_DENIED_CNT",         "",   topNumber,   topAsCount,       2},
    {"processings",  "PROC_RATE",              "/s", topNumber,   topAsTenths,      2, topAlways},
    {"unexpected",   "PUT_BAD_OPEN_CNT",       "",   topNumber,   topAsCount,       2},
    {"",             "PUT_BAD_REASON.VAL$",    "",   topLongText, topAsText,        2, topIfItemBefore},
    {"lost",         "LOST_CNT",               "",   topNumber,   topAsCount,       3},
    {"log",          "LOG_STATE",              "",   topText,     topAsText,        3},
    {"lost lines",   "LOG_LOST_CNT",           "",   topNumber,   topAsCount,       3},
    {"history",      "HISTORY_STATE",          "",   topText,     topAsText,        3},
    {"lost rows",    "HISTORY_LOST_CNT",       "",   topNumber,   topAsCount,       3},
    {"OTLP",         "OTLP_STATE",             "",   topText,     topAsText,        3},
    {"lost items",   "OTLP_LOST_CNT",          "",   topNumber,   topAsCount,       3},
    {"RecSync",      "RECSYNC_STATE",          "",   topText,     topAsText,        3},
    {"packets",      "PACKET_STATE",           "",   topText,     topAsText,        3},
    {"lost packets", "PACKET_LOST_CNT",        "",   topNumber,   topAsCount,       3},
    {"checks:",      "AUDIT.VAL$",             "",   topLongText, topAsText,        3},
};
static const unsigned topItems = sizeof(topItemSpecs) / sizeof(topItemSpecs[0]);

static const topTextSpec topTextSpecs[topTextCount] = {
    [topEvents] = {"EVENTS OF IOCS, newest first", "IOC_EVENTS", 1},
    [topStacks] = {"THREADS THAT HANG", "HANG_STACKS"},
    [topKept] = {"KEPT CHAINS, newest first", "CHAIN_LOG"},
    [topFound] = {"HISTORY, newest first", "HISTORY_TEXT"},
    [topQuestion] = {"WHY IS THIS PV NOT WHAT I SEE?", "WHY_PV.VAL$"},
    [topWhy] = {"", "WHY_TEXT", 1},
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
    {"subscriptions", 'w', "what IOCs send, and which clients do not take it", {topSubscriptions, TOP_NONE}, NO_TEXT,
     0},
    [topViewWhy] = {"why", 'x', "why is a PV not what I see? Type its name, and perhaps a client", NO_TABLE,
                    {topQuestion, topWhy, TOP_NONE}, 0},
    {"events", 'e', "starts, ends and hangs of IOCs; threads that hang", NO_TABLE, {topEvents, topStacks, TOP_NONE}, 0},
    {"history", 'y', "what HISTORY_FROM, _TO, _PV and _USER ask for (write them with caput)", NO_TABLE,
     {topFound, TOP_NONE}, 0},
    {"losses", 'l', "lost events, names that nobody has, all states of the monitor", {topLosses, topUnfound, TOP_NONE},
     NO_TEXT, 0, 1},
};
const unsigned topViews = sizeof(topViewSpecs) / sizeof(topViewSpecs[0]);

/* --- data --- */

static const topTableSpec histogramSpec = {"LATENCY", {
    {"CHAIN_HIST_EDGES", "from ms", topAsMillis}, {"CHAIN_HIST", "chains", topAsCount}}, TOP_NONE, 0};

int topDataOpen(topData *data, const char *prefix)
{
    if (topPvsOpen(&data->pvs, prefix))
        return -1;
    for (unsigned i = 0; i < topItems; i++)
        if (!(data->item[i] = topPvsGet(&data->pvs, topItemSpecs[i].name, topItemSpecs[i].kind)))
            return -1;
    for (unsigned i = 0; i < topTables; i++)
        if (topTableOpen(&data->table[i], &topTableSpecs[i], &data->pvs))
            return -1;
    for (unsigned i = 0; i < topTextCount; i++)
        if (!(data->text[i] = topPvsGet(&data->pvs, topTextSpecs[i].name, topLongText)))
            return -1;
    data->state = topPvsGet(&data->pvs, "STATE", topText);
    data->root = topPvsGet(&data->pvs, "CHAIN_HIST_ROOT.VAL$", topLongText);
    return data->state && data->root ? topTableOpen(&data->histogram, &histogramSpec, &data->pvs) : -1;
}

void topDataClose(topData *data)
{
    topPvsClose(&data->pvs); /* close this first: until it returns, answers may come and use the tables */
    for (unsigned i = 0; i < topTables; i++)
        topTableClose(&data->table[i]);
    topTableClose(&data->histogram);
}

int topDataRead(topData *data)
{
    int isComplete = 1;

    topPvsPoll(&data->pvs);
    for (unsigned i = 0; i < topTables; i++)
        isComplete &= topTableRead(&data->table[i]);
    isComplete &= topTableRead(&data->histogram);
    if (data->state->isConnected || !data->state->isKnown)
        data->lostAt = (epicsTimeStamp){0, 0};
    else if (!data->lostAt.secPastEpoch)
        epicsTimeGetCurrent(&data->lostAt);
    return isComplete && data->state->isConnected && !topPvsCountMissing(&data->pvs);
}

/* --- pages --- */

#define ROWS_MAX   400
#define BAR_WIDTH  40
#define LEAST_ROWS 2 /* so many rows a table gets in any case */
#define ITEM_MAX   1500 /* bytes of the text of an item */
#define TEXTS_MAX  (sizeof(topViewSpecs[0].text) / sizeof(topViewSpecs[0].text[0])) /* of a view */
#define WRAP_LINES 20 /* on a screen of so many lines a line of the header that is too long becomes two */

unsigned topPageListTables(const topLook *look, int tables[TOP_VIEW_TABLES])
{
    static const int ofRecord[] = {topRecords, topChains, topPuts, topAutoPuts};
    unsigned count = 0;

    if (look->record[0]) {
        memcpy(tables, ofRecord, sizeof(ofRecord));
        return sizeof(ofRecord) / sizeof(ofRecord[0]);
    }
    while (count < TOP_VIEW_TABLES && topViewSpecs[look->view].table[count] != TOP_NONE) {
        tables[count] = topViewSpecs[look->view].table[count];
        count++;
    }
    return count;
}

int topPageHasTexts(const topLook *look)
{
    return !look->record[0] && topViewSpecs[look->view].text[0] != TOP_NONE;
}

const topTable *topPageGetFocus(const topData *data, const topLook *look, unsigned *rows, unsigned max,
                                unsigned *count)
{
    int tables[TOP_VIEW_TABLES];
    unsigned n = topPageListTables(look, tables);
    const topTable *table;

    *count = 0;
    if (look->isHelp || look->focus >= n)
        return NULL;
    table = &data->table[tables[look->focus]];
    *count = topTableChoose(table, look->filter, look->record, rows, max);
    return table;
}

/* --- the header -------------------------------------------------------------------------------------- */

/* Goes on in the next line, between words, where the text would end behind the columns. */
static void addWords(topSheet *sheet, unsigned style, const char *text, int columns)
{
    while (columns && sheet->columns + topTextWidth(text, strlen(text)) > columns) {
        size_t fit = topTextFit(text, strlen(text), columns - sheet->columns);

        while (fit && text[fit] != ' ')
            fit--;
        if (!fit)
            break;
        topSheetAdd(sheet, style, "%.*s", (int)fit, text);
        topSheetEndLine(sheet);
        topSheetAdd(sheet, topPlain, "    ");
        text += fit + 1;
    }
    topSheetAdd(sheet, style, "%s", text);
}

/* "columns": begin another line before this item if it would end behind them; 0: never. */
static void addItem(const topItemSpec *spec, const topPv *pv, int columns, topSheet *sheet)
{
    unsigned style = !topPvIsValid(pv) ? topInvalid : pv->severity;
    char value[ITEM_MAX];

    if (!topPvIsValid(pv))
        strcpy(value, "?"); /* do not show a value that is not valid */
    else if (spec->kind != topNumber)
        epicsSnprintf(value, sizeof(value), "%s", pv->text);
    else
        epicsSnprintf(value, sizeof(value), "%.*f%s%s",
                      spec->format == topAsThousandths ? 3 : spec->format == topAsTenths ? 1 : 0, pv->number,
                      spec->unit[0] && spec->unit[0] != '/' ? " " : "", spec->unit);
    if (columns && sheet->columns &&
        sheet->columns + (int)strlen(spec->label) + 1 + topTextWidth(value, strlen(value)) > columns) {
        topSheetEndLine(sheet);
        topSheetAdd(sheet, topPlain, "    ");
    }
    if (spec->label[0])
        topSheetAdd(sheet, topPlain, "%s ", spec->label);
    addWords(sheet, style, value, columns);
    topSheetAdd(sheet, topPlain, "  ");
}

static int isAlarm(const topPv *pv)
{
    return !topPvIsValid(pv) || pv->severity;
}

/* What is normal takes one line of a screen: there, items without an alarm are left out. */
static int isShown(const topData *data, unsigned item, int isWhole)
{
    const topPv *before = item ? data->item[item - 1] : NULL;

    switch (topItemSpecs[item].when) {
    case topAlways:
        return 1;
    case topIfItemBefore:
        return !topPvIsValid(before) || before->number > 0;
    default:
        return isWhole || isAlarm(data->item[item]);
    }
}

static void addItems(const topData *data, int line, int isWhole, int columns, topSheet *sheet)
{
    for (unsigned i = 0; i < topItems; i++)
        if (topItemSpecs[i].line == line && isShown(data, i, isWhole))
            addItem(&topItemSpecs[i], data->item[i], columns, sheet);
}

static void addHeader(const topData *data, const topLook *look, unsigned lines, topSheet *sheet)
{
    int columns = lines >= WRAP_LINES ? look->columns : 0;
    int isWhole = lines == TOP_ALL_LINES || (topViewSpecs[look->view].hasAllItems && !look->record[0]);
    char when[32];

    topSheetAdd(sheet, topTitle, "ebpfMon %s", data->pvs.prefix);
    topSheetAdd(sheet, topPlain, "  ");
    if (data->lostAt.secPastEpoch) {
        epicsTimeToStrftime(when, sizeof(when), "%H:%M:%S", &data->lostAt);
        topSheetAdd(sheet, topInvalid, "NO ANSWER since %s: these values are from that time", when);
        topSheetAdd(sheet, topPlain, "  ");
    } else if (!data->state->isKnown) {
        topSheetAdd(sheet, topInvalid, "NO ANSWER yet from %sSTATE", data->pvs.prefix);
        topSheetEndLine(sheet);
        topSheetAdd(sheet, topPlain, "Check the prefix, whether the monitor runs, and");
        topSheetEndLine(sheet);
        topSheetAdd(sheet, topPlain, "whether EPICS_CA_ADDR_LIST has its host");
        topSheetEndLine(sheet);
        return;
    }
    if (look->isPaused)
        topSheetAdd(sheet, topHeading, "PAUSED  ");
    addItems(data, 0, isWhole, columns, sheet);
    topSheetEndLine(sheet);
    for (int line = 1; line < TOP_HEADER_LINES; line++) {
        addItems(data, line, isWhole, columns, sheet);
        if (isWhole)
            topSheetEndLine(sheet);
    }
    if (!isWhole)
        topSheetEndLine(sheet);
}

/* --- tables ------------------------------------------------------------------------------------------ */

typedef struct {
    const topTable *table;
    unsigned rows[ROWS_MAX], count; /* the rows that match the filter, sorted */
    unsigned first, shown;          /* the part of them for which the page has room */
    int      cursor;                /* index in "rows"; -1: the cursor is in another table */
} tablePart;

static int isHidden(const topTable *table, unsigned column)
{
    return table->spec->column[column].format == topAsFlag;
}

static int isNumber(const topTable *table, unsigned column)
{
    topFormat format = table->spec->column[column].format;

    return format != topAsText && format != topAsTime;
}

static void findWidths(const tablePart *part, int isBrief, int width[TOP_COLUMNS_MAX])
{
    char cell[MAX_STRING_SIZE + 4];

    for (unsigned i = 0; i < part->table->columns; i++) {
        /* 1: the mark of the sorted column; 0: it is not shown */
        width[i] = isHidden(part->table, i) ? 0 : (int)strlen(part->table->spec->column[i].heading) + 1;
        for (unsigned k = part->first; width[i] && k < part->first + part->shown; k++) {
            int w;

            topTableFormat(part->table, part->rows[k], i, isBrief, cell, sizeof(cell));
            w = topTextWidth(cell, strlen(cell));
            width[i] = w > width[i] ? w : width[i];
        }
    }
}

#define LEAST_WIDTH 8  /* of a column that is made narrower … */
#define GOOD_WIDTH  14 /* … before other columns go; 2.5 times as much of one that stays wide */

static int isEmpty(const tablePart *part, unsigned column)
{
    char cell[MAX_STRING_SIZE + 4];

    for (unsigned k = part->first; k < part->first + part->shown; k++) {
        topTableFormat(part->table, part->rows[k], column, 1, cell, sizeof(cell));
        if (cell[0])
            return 0;
    }
    return 1;
}

static int addWidths(const topTable *table, const int width[TOP_COLUMNS_MAX])
{
    int all = 0;

    for (unsigned i = 0; i < table->columns; i++)
        all += width[i] ? 2 + width[i] : 0;
    return all;
}

static int isKept(const topTable *table, unsigned column)
{
    return table->spec->column[column].fit == topFitKeep;
}

/* Makes wide texts narrower, the widest first, until the columns fit. 0: they do not, although all have "least". */
static int makeNarrow(const topTable *table, int columns, int least, int width[TOP_COLUMNS_MAX])
{
    while (addWidths(table, width) > columns) {
        unsigned widest = table->columns;

        for (unsigned i = 0; i < table->columns; i++)
            if (table->spec->column[i].format == topAsText &&
                width[i] > (isKept(table, i) ? 5 * least / 2 : least) &&
                (widest == table->columns || isKept(table, i) < isKept(table, widest) ||
                 (isKept(table, i) == isKept(table, widest) && width[i] > width[widest])))
                widest = i;
        if (widest == table->columns)
            return 0;
        width[widest]--;
    }
    return 1;
}

/* On a narrow screen columns without any text go first, then those that may, then the last ones. Returns how many; a
 * width of 0: this column is not shown. */
static unsigned fitWidths(const tablePart *part, int columns, int width[TOP_COLUMNS_MAX])
{
    const topTable *table = part->table;
    int wanted[TOP_COLUMNS_MAX], least = GOOD_WIDTH;
    unsigned gone = 0, next;

    for (unsigned i = table->columns; columns && i-- > 0 && addWidths(table, width) > columns;)
        if (table->spec->column[i].format == topAsText && isEmpty(part, i))
            width[i] = 0;
    memcpy(wanted, width, sizeof(wanted));
    while (columns && !makeNarrow(table, columns, least, width)) {
        next = table->columns;
        while (next-- > 1 && (!wanted[next] || (least == GOOD_WIDTH && table->spec->column[next].fit != topFitFirst)))
            ;
        if (next) {
            wanted[next] = 0;
            gone++;
        } else if (least == GOOD_WIDTH) {
            least = LEAST_WIDTH;
        } else {
            break;
        }
        memcpy(width, wanted, sizeof(wanted));
    }
    return gone;
}

static void addCell(topSheet *sheet, unsigned style, const char *cell, int width, int isRight)
{
    int begin = sheet->columns, w = topTextWidth(cell, strlen(cell));

    topSheetFill(sheet, style, begin + 2 + (isRight && w < width ? width - w : 0));
    if (w <= width)
        topSheetAdd(sheet, style, "%s", cell);
    else
        topSheetAdd(sheet, style, "%.*s...", (int)topTextFit(cell, strlen(cell), width - 3), cell);
    topSheetFill(sheet, style, begin + 2 + width);
}

/* "columns": of the screen; 0: any number. */
static void addTable(const tablePart *part, int isBrief, int columns, topSheet *sheet)
{
    const topTable *table = part->table;
    int width[TOP_COLUMNS_MAX];
    char cell[MAX_STRING_SIZE + 4];
    unsigned gone;

    findWidths(part, isBrief, width);
    gone = fitWidths(part, columns, width);

    topSheetAdd(sheet, topTitle, "%s", table->spec->title);
    if (!table->isKnown)
        topSheetAdd(sheet, topDim, "   none yet"); /* also before the first update, for a moment */
    else if (!topTableIsValid(table))
        topSheetAdd(sheet, topInvalid, "   the monitor has no values");
    else if (part->shown < part->count)
        topSheetAdd(sheet, topDim, "   %u to %u of %u", part->first + 1, part->first + part->shown, part->count);
    else if (part->count)
        topSheetAdd(sheet, topDim, "   %u", part->count);
    else
        topSheetAdd(sheet, topDim, "   none");
    if (gone)
        topSheetAdd(sheet, topDim, "; no room for %u column%s", gone, gone == 1 ? "" : "s");
    topSheetEndLine(sheet);
    if (!part->count)
        return; /* columns without rows say nothing */
    for (unsigned i = 0; i < table->columns; i++) {
        epicsSnprintf(cell, sizeof(cell), "%s%s", table->spec->column[i].heading,
                      table->sortBy != (int)i ? "" : table->isReversed ? "^" : "v");
        if (width[i])
            addCell(sheet, topHeading, cell, width[i], isNumber(table, i));
    }
    topSheetEndLine(sheet);
    for (unsigned k = part->first; k < part->first + part->shown; k++) {
        unsigned style = topTableGetStyle(table, part->rows[k]) | (part->cursor == (int)k ? TOP_SELECTED : 0u);

        for (unsigned i = 0; i < table->columns; i++) {
            topTableFormat(table, part->rows[k], i, isBrief, cell, sizeof(cell));
            if (width[i])
                addCell(sheet, style, cell, width[i], isNumber(table, i));
        }
        topSheetEndLine(sheet);
    }
}

/* --- histogram and texts ----------------------------------------------------------------------------- */

/* Finds the buckets from the first one with a chain to the last one. Returns their number. */
static unsigned findUsed(const topTable *histogram, unsigned *first)
{
    const double *counts = histogram->column[1].numbers;
    unsigned begin = 0, end = histogram->rows;

    while (begin < end && !(counts[begin] > 0))
        begin++;
    while (end > begin && !(counts[end - 1] > 0))
        end--;
    *first = begin;
    return end - begin;
}

static void addHistogram(const topData *data, topSheet *sheet)
{
    const topTable *it = &data->histogram;
    const char *root = data->root->text;
    unsigned first, used = topTableIsValid(it) ? findUsed(it, &first) : 0;
    double most = 0, all = 0;

    for (unsigned i = 0; i < used; i++) {
        all += it->column[1].numbers[first + i];
        most = fmax(most, it->column[1].numbers[first + i]);
    }
    topSheetAdd(sheet, topTitle, "LATENCY of %s%s", root[0] ? "the chains of " : "all chains", root);
    if (!topTableIsValid(it))
        topSheetAdd(sheet, topInvalid, root[0] ? "   no chain of this record was seen" : "   no values");
    else
        topSheetAdd(sheet, topDim, "   %.0f", all);
    topSheetEndLine(sheet);
    topSheetAdd(sheet, topHeading, "  %11s  %10s", "from ms", "chains");
    topSheetEndLine(sheet);
    for (unsigned i = first; used && i < first + used; i++) {
        double count = it->column[1].numbers[i];
        int bar = (int)lround(BAR_WIDTH * count / most);

        topSheetAdd(sheet, topPlain, "  %11.3f  %10.0f  ", it->column[0].numbers[i] / 1000, count);
        topSheetAdd(sheet, topBar, "%.*s", bar ? bar : count > 0, "########################################");
        topSheetEndLine(sheet);
    }
}

static unsigned countHistogram(const topData *data)
{
    unsigned first;

    return 2 + (topTableIsValid(&data->histogram) ? findUsed(&data->histogram, &first) : 0);
}

/* The bytes of this line that stand in one line of the screen: whole words, if there are any. */
static size_t cutLine(const topTextSpec *spec, const topLook *look, const char *line)
{
    size_t length = strcspn(line, "\n"), fit, word;
    int columns = look->columns - 8; /* the most blanks before it */

    if (!spec->isWrapped || look->columns < 20 || (fit = topTextFit(line, length, columns)) == length)
        return length;
    for (word = fit; word && line[word] != ' '; word--)
        ;
    return word > 2 ? word : fit;
}

/* Adds its lines without the first *skip ones, and takes those from *skip. Returns the number of all, with the title.
 * "sheet" NULL: only counts. */
static unsigned addText(const topTextSpec *spec, const topLook *look, const topPv *pv, unsigned *skip, topSheet *sheet)
{
    unsigned count = 1;
    size_t n;
    int isRest = 0;

    if (sheet) {
        topSheetAdd(sheet, topTitle, "%s", spec->title);
        if (!topPvIsValid(pv))
            topSheetAdd(sheet, topInvalid, "   the monitor has no values");
        topSheetEndLine(sheet);
    }
    for (const char *line = pv->text; *line; line += n, line += *line == '\n' || *line == ' ') {
        n = cutLine(spec, look, line);
        count++;
        if (sheet && *skip) {
            --*skip;
        } else if (sheet) {
            topSheetAdd(sheet, topPlain, "%s%.*s", isRest ? "        " : "  ", (int)n, line);
            topSheetEndLine(sheet);
        }
        isRest = line[n] && line[n] != '\n';
    }
    return count;
}

/* Keeps the page full: not more of "count" lines may be above the screen than have no room below. */
static void limitScroll(topLook *look, unsigned count, unsigned room)
{
    unsigned most = count > room ? count - room : 0;

    if (look->scroll > most)
        look->scroll = most;
}

/* As addText, of all texts of the view. */
static unsigned addTexts(const topData *data, const topLook *look, topSheet *sheet)
{
    const topViewSpec *view = &topViewSpecs[look->view];
    unsigned skip = look->scroll, count = 0;

    for (unsigned i = 0; i < TEXTS_MAX && view->text[i] != TOP_NONE; i++)
        count += addText(&topTextSpecs[view->text[i]], look, data->text[view->text[i]], &skip, sheet);
    return count;
}

/* --- the page ---------------------------------------------------------------------------------------- */

/* Chooses the rows that are shown: the cursor must be among them. */
static void chooseWindow(tablePart *part, unsigned room)
{
    part->shown = part->count < room ? part->count : room;
    part->first = 0;
    if (part->cursor >= (int)part->shown)
        part->first = (unsigned)part->cursor - part->shown + 1;
    if (part->first + part->shown > part->count)
        part->first = part->count - part->shown;
}

/* Adds the tables. Each gets its share of the lines; lines that it does not need go to the next tables. */
static void addTables(const topData *data, const topLook *look, unsigned lines, unsigned most, topSheet *sheet)
{
    int tables[TOP_VIEW_TABLES];
    unsigned count = topPageListTables(look, tables);

    for (unsigned i = 0; i < count; i++) {
        tablePart part = {&data->table[tables[i]], .cursor = -1};
        unsigned share = lines / (count - i), room = share > 4 ? share - 3 : LEAST_ROWS, before = 0;

        part.count = topTableChoose(part.table, look->filter, look->record, part.rows, ROWS_MAX);
        if (lines != TOP_ALL_LINES && look->focus == i)
            part.cursor = part.count ? (int)look->cursor : -1;
        chooseWindow(&part, room < most ? room : most);
        before = (unsigned)sheet->lines;
        addTable(&part, lines != TOP_ALL_LINES, look->columns, sheet);
        topSheetEndLine(sheet);
        before = (unsigned)sheet->lines - before;
        if (lines != TOP_ALL_LINES)
            lines -= before < lines ? before : lines;
    }
}

/* Without the header, so that a screen of 24 lines and 80 columns has all of it. */
static void addHelp(topLook *look, unsigned lines, topSheet *sheet)
{
    static const char *const keys[] = {
        "up, down, PgUp, PgDn, Home, End  move the cursor, or texts and this help",
        "Tab     to the next table, and to texts",
        "Enter   shows the record of this row: its counts, chains and puts; Esc: back",
        "< >     sort by the column to the left or right; r: reverse; =: as the monitor",
        "/       only rows that have a text, or match a pattern with * and ?; Esc: all",
        "h       histogram of this record, for all users (CHAIN_HIST_ROOT); H: of all",
        "blank   stops new values, and lets them come;  ?: closes this help; q: ends"};
    unsigned count = sizeof(keys) / sizeof(keys[0]);

    limitScroll(look, 1 + topViews + count, lines);
    topSheetAdd(sheet, topTitle, "KEYS");
    topSheetEndLine(sheet);
    for (unsigned i = look->scroll; i < topViews + count; i++) {
        if (i < topViews)
            topSheetAdd(sheet, topPlain, "  %c       %s", topViewSpecs[i].key, topViewSpecs[i].what);
        else
            topSheetAdd(sheet, topPlain, "  %s", keys[i - topViews]);
        topSheetEndLine(sheet);
    }
}

void topPageMake(const topData *data, topLook *look, unsigned lines, unsigned rows, topSheet *sheet)
{
    const topViewSpec *view = &topViewSpecs[look->view];
    int hasHistogram = look->record[0] ? strcmp(look->record, data->root->text) == 0 : view->hasHistogram;
    int tables[TOP_VIEW_TABLES];
    unsigned left = lines, tableCount = topPageListTables(look, tables);

    topSheetClear(sheet);
    if (look->isHelp) {
        addHelp(look, lines, sheet);
        return;
    }
    addHeader(data, look, lines, sheet);
    topSheetEndLine(sheet);
    if (look->record[0]) {
        topSheetAdd(sheet, topTitle, "RECORD %s", look->record);
        topSheetAdd(sheet, topDim, topTableIsCut(look->record) ? "   and others that begin so" : "");
        topSheetAdd(sheet, topDim, lines == TOP_ALL_LINES ? "" : "   Esc: back");
        topSheetEndLine(sheet);
    }
    if (topPageHasTexts(look) && look->focus >= tableCount) { /* alone, because the tables may need all lines */
        limitScroll(look, addTexts(data, look, NULL), lines > sheet->lines ? lines - (unsigned)sheet->lines : 0);
        addTexts(data, look, sheet);
        return;
    }
    if (lines != TOP_ALL_LINES) {
        unsigned taken = (unsigned)sheet->lines, wanted = countHistogram(data) + 1;

        left = lines > taken ? lines - taken : 0;
        /* On a small screen the overview has no room for the histogram: its tables are more important. */
        if (wanted + tableCount * (LEAST_ROWS + 3) > left && look->view == topViewOverview)
            hasHistogram = 0;
        if (hasHistogram)
            left = left > wanted ? left - wanted : 0;
    }
    addTables(data, look, left, rows, sheet);
    if (hasHistogram) {
        addHistogram(data, sheet);
        topSheetEndLine(sheet);
    }
    if (topPageHasTexts(look))
        addTexts(data, look, sheet);
}
