/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include <alarm.h>
#include <epicsStdio.h>
#include <epicsTime.h>

#include "topPage.h"

#define ROWS_MAX   400
#define BAR_WIDTH  40
#define LEAST_ROWS 3 /* so many rows a table gets in any case */
#define ITEM_MAX   1500 /* bytes of the text of an item */
#define TEXTS_MAX  (sizeof(topViewSpecs[0].text) / sizeof(topViewSpecs[0].text[0])) /* of a view */
#define WRAP_LINES 20 /* on a screen of so many lines a line of the header that is too long becomes two */

unsigned topPageListTables(const topLook *look, int tables[TOP_VIEW_TABLES])
{
    static const int ofRecord[] = {topRecords, topChains, topPuts};
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
    topSheetAdd(sheet, style, "%s", value);
    topSheetAdd(sheet, topPlain, "  ");
}

static int isShown(const topData *data, unsigned item)
{
    const topPv *before = item && topItemSpecs[item].isReason ? data->item[item - 1] : NULL;

    return !before || !topPvIsValid(before) || before->number > 0;
}

static void addHeader(const topData *data, const topLook *look, unsigned lines, topSheet *sheet)
{
    int columns = lines >= WRAP_LINES ? look->columns : 0;
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
    for (int line = 0; line < TOP_HEADER_LINES; line++) {
        for (unsigned i = 0; i < topItems; i++)
            if (topItemSpecs[i].line == line && isShown(data, i))
                addItem(&topItemSpecs[i], data->item[i], columns, sheet);
        topSheetEndLine(sheet);
    }
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
        width[i] = (int)strlen(part->table->spec->column[i].heading) + 1; /* 1: the mark of the sorted column */
        for (unsigned k = part->first; k < part->first + part->shown; k++) {
            int w;

            topTableFormat(part->table, part->rows[k], i, isBrief, cell, sizeof(cell));
            w = topTextWidth(cell, strlen(cell));
            width[i] = w > width[i] ? w : width[i];
        }
    }
}

static void addCell(topSheet *sheet, unsigned style, const char *cell, int width, int isRight)
{
    int begin = sheet->columns, w = topTextWidth(cell, strlen(cell));

    topSheetFill(sheet, style, begin + 2 + (isRight && w < width ? width - w : 0));
    topSheetAdd(sheet, style, "%s", cell);
    topSheetFill(sheet, style, begin + 2 + width);
}

static void addTable(const tablePart *part, int isBrief, topSheet *sheet)
{
    const topTable *table = part->table;
    int width[TOP_COLUMNS_MAX];
    char cell[MAX_STRING_SIZE + 4];

    topSheetAdd(sheet, topTitle, "%s", table->spec->title);
    if (!table->isKnown)
        topSheetAdd(sheet, topInvalid, "   no values yet");
    else if (!topTableIsValid(table))
        topSheetAdd(sheet, topInvalid, "   the monitor has no values");
    else if (part->shown < part->count)
        topSheetAdd(sheet, topDim, "   %u to %u of %u", part->first + 1, part->first + part->shown, part->count);
    else
        topSheetAdd(sheet, topDim, "   %u", part->count);
    topSheetEndLine(sheet);
    findWidths(part, isBrief, width);
    for (unsigned i = 0; i < table->columns; i++) {
        epicsSnprintf(cell, sizeof(cell), "%s%s", table->spec->column[i].heading,
                      table->sortBy != (int)i ? "" : table->isReversed ? "^" : "v");
        if (!isHidden(table, i))
            addCell(sheet, topHeading, cell, width[i], isNumber(table, i));
    }
    topSheetEndLine(sheet);
    for (unsigned k = part->first; k < part->first + part->shown; k++) {
        unsigned style = topTableGetStyle(table, part->rows[k]) | (part->cursor == (int)k ? TOP_SELECTED : 0u);

        for (unsigned i = 0; i < table->columns; i++) {
            topTableFormat(table, part->rows[k], i, isBrief, cell, sizeof(cell));
            if (!isHidden(table, i))
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
    topSheetAdd(sheet, topHeading, "  %11s  %10s", "from us", "chains");
    topSheetEndLine(sheet);
    for (unsigned i = first; used && i < first + used; i++) {
        double count = it->column[1].numbers[i];
        int bar = (int)lround(BAR_WIDTH * count / most);

        topSheetAdd(sheet, topPlain, "  %11.3f  %10.0f  ", it->column[0].numbers[i], count);
        topSheetAdd(sheet, topBar, "%.*s", bar ? bar : count > 0, "########################################");
        topSheetEndLine(sheet);
    }
}

static unsigned countHistogram(const topData *data)
{
    unsigned first;

    return 2 + (topTableIsValid(&data->histogram) ? findUsed(&data->histogram, &first) : 0);
}

/* Leaves out the first *skip lines, and takes them from *skip. */
static void addText(const char *title, const topPv *pv, unsigned *skip, topSheet *sheet)
{
    const char *line = pv->text;

    topSheetAdd(sheet, topTitle, "%s", title);
    if (!topPvIsValid(pv))
        topSheetAdd(sheet, topInvalid, "   the monitor has no values");
    topSheetEndLine(sheet);
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*skip) {
            --*skip;
            continue;
        }
        topSheetAdd(sheet, topPlain, "  %.*s", (int)strcspn(line, "\n"), line);
        topSheetEndLine(sheet);
    }
}

/* Keeps the page full: not more of "count" lines may be above the screen than have no room below. */
static void limitScroll(topLook *look, unsigned count, unsigned room)
{
    unsigned most = count > room ? count - room : 0;

    if (look->scroll > most)
        look->scroll = most;
}

/* The lines of all texts, with their titles. */
static unsigned countTexts(const topData *data, const topViewSpec *view)
{
    unsigned count = 0;

    for (unsigned i = 0; i < TEXTS_MAX && view->text[i] != TOP_NONE; i++) {
        count++;
        for (const char *line = data->text[view->text[i]]->text; *line; line += *line == '\n') {
            line += strcspn(line, "\n");
            count++;
        }
    }
    return count;
}

static void addTexts(const topData *data, const topLook *look, topSheet *sheet)
{
    const topViewSpec *view = &topViewSpecs[look->view];
    unsigned skip = look->scroll;

    for (unsigned i = 0; i < TEXTS_MAX && view->text[i] != TOP_NONE; i++)
        addText(topTextSpecs[view->text[i]].title, data->text[view->text[i]], &skip, sheet);
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
        unsigned share = lines / (count - i), room = share > LEAST_ROWS + 3 ? share - 3 : LEAST_ROWS, before = 0;

        part.count = topTableChoose(part.table, look->filter, look->record, part.rows, ROWS_MAX);
        if (lines != TOP_ALL_LINES && look->focus == i)
            part.cursor = part.count ? (int)look->cursor : -1;
        chooseWindow(&part, room < most ? room : most);
        before = (unsigned)sheet->lines;
        addTable(&part, lines != TOP_ALL_LINES, sheet);
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
        "/       type a text, or a pattern with * and ?: only rows that have it or",
        "        match are shown; Esc: all",
        "blank   stops new values, and lets them come again",
        "h       shows the histogram of the chains of this record; H: of all chains.",
        "        This needs the right to write CHAIN_HIST_ROOT. There is one such PV,",
        "        so all users see this histogram",
        "?       closes this help; q: ends"};
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
        limitScroll(look, countTexts(data, view), lines > sheet->lines ? lines - (unsigned)sheet->lines : 0);
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
