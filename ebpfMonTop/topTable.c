/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE 700 /* wcwidth */
#include <alarm.h>
#include <cadef.h>
#include <ctype.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "common/array.h"
#include "common/text.h"
#include "topTable.h"

/* --- the sheet --- */

#define PIECE_MAX 2000 /* bytes of one piece of text at most; a line of a PV has at most 1400 */

void topSheetClear(topSheet *sheet)
{
    sheet->length = sheet->runs = sheet->lines = 0;
    sheet->columns = 0;
    sheet->isShort = 0;
}

void topSheetFree(topSheet *sheet)
{
    free(sheet->text);
    free(sheet->run);
    free(sheet->line);
    memset(sheet, 0, sizeof(*sheet));
}

/* Makes room for a piece of text. Nonzero: there is no memory. */
static int beginPiece(topSheet *sheet, size_t length)
{
    if (ebpfMonArrayGrow(&sheet->text, &sheet->textRoom, sheet->length + length, 4096, 1) ||
        ebpfMonArrayGrow(&sheet->run, &sheet->runRoom, sheet->runs + 1, 256, sizeof(*sheet->run)))
        sheet->isShort = 1;
    return sheet->isShort;
}

static void addPiece(topSheet *sheet, unsigned style, const char *text, size_t length)
{
    if (!length || beginPiece(sheet, length))
        return;
    memcpy(sheet->text + sheet->length, text, length);
    sheet->run[sheet->runs++] = (topRun){sheet->length, length, style};
    sheet->length += length;
    sheet->columns += topTextWidth(text, length);
}

void topSheetAdd(topSheet *sheet, unsigned style, const char *format, ...)
{
    char raw[PIECE_MAX], clean[PIECE_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    ebpfMonTextCopy(clean, sizeof(clean), raw);
    addPiece(sheet, style, clean, strlen(clean));
}

void topSheetFill(topSheet *sheet, unsigned style, int column)
{
    char blanks[PIECE_MAX];
    int count = column - sheet->columns;

    if (count <= 0)
        return;
    if (count > (int)sizeof(blanks))
        count = (int)sizeof(blanks);
    memset(blanks, ' ', (size_t)count);
    addPiece(sheet, style, blanks, (size_t)count);
}

void topSheetEndLine(topSheet *sheet)
{
    if (ebpfMonArrayGrow(&sheet->line, &sheet->lineRoom, sheet->lines + 1, 128, sizeof(*sheet->line))) {
        sheet->isShort = 1;
        return;
    }
    sheet->line[sheet->lines++] = sheet->runs;
    sheet->columns = 0;
}

size_t topSheetFirstRun(const topSheet *sheet, size_t line)
{
    return line ? sheet->line[line - 1] : 0;
}

size_t topSheetEndRun(const topSheet *sheet, size_t line)
{
    return sheet->line[line];
}

void topSheetPrint(const topSheet *sheet, FILE *out)
{
    for (size_t line = 0; line < sheet->lines; line++) {
        size_t first = topSheetFirstRun(sheet, line), end = topSheetEndRun(sheet, line);
        size_t from = first < end ? sheet->run[first].at : 0;
        size_t to = first < end ? sheet->run[end - 1].at + sheet->run[end - 1].length : 0;

        while (to > from && sheet->text[to - 1] == ' ') /* the texts of a line's runs follow each other in "text" */
            to--;
        fprintf(out, "%.*s\n", (int)(to - from), sheet->text + from);
    }
}

/* Returns the bytes of the next character; *columns: how many columns it takes. */
static size_t measureCharacter(const char *text, size_t length, int *columns)
{
    mbstate_t state;
    wchar_t wide;
    size_t bytes;

    memset(&state, 0, sizeof(state));
    bytes = mbrtowc(&wide, text, length, &state);
    if (bytes == 0 || bytes > length) { /* the locale is not UTF-8 */
        *columns = 1;
        return 1;
    }
    *columns = wcwidth(wide);
    if (*columns < 0)
        *columns = 1;
    return bytes;
}

int topTextWidth(const char *text, size_t length)
{
    int all = 0, columns;

    for (size_t at = 0; at < length; all += columns)
        at += measureCharacter(text + at, length - at, &columns);
    return all;
}

size_t topTextFit(const char *text, size_t length, int columns)
{
    size_t at = 0;
    int width;

    while (at < length) {
        size_t bytes = measureCharacter(text + at, length - at, &width);

        if (width > columns)
            break;
        columns -= width;
        at += bytes;
    }
    return at;
}

/* --- tables --- */

#define CUT "..."    /* the end of a text that did not fit */
#define TRIES_MAX 20 /* after so many readings without success, wait for the next change */

static int isText(const topColumn *column)
{
    return column->pv->kind == topTexts;
}

/* Makes the new array of a column the one that is shown. */
static void swapArrays(topColumn *column)
{
    topColumn old = *column;

    column->texts = old.newTexts;
    column->newTexts = old.texts;
    column->numbers = old.newNumbers;
    column->newNumbers = old.numbers;
    column->room = old.newRoom;
    column->newRoom = old.room;
    column->count = old.newCount;
    column->severity = old.newSeverity;
    column->time = old.newTime;
}

static int areOfOneMoment(const topTable *table)
{
    for (unsigned i = 0; i < table->columns; i++) {
        const topColumn *first = &table->column[0], *one = &table->column[i];

        if (!one->isNew || one->newTime.secPastEpoch != first->newTime.secPastEpoch ||
            one->newTime.nsec != first->newTime.nsec || one->newCount != first->newCount)
            return 0;
    }
    return 1;
}

/* All answers have come: shows them if they are of the same moment. */
static void takeAnswers(topTable *table)
{
    if (!areOfOneMoment(table)) {
        if (++table->tries < TRIES_MAX)
            table->column[0].seen--; /* so the table is read again */
        return;
    }
    for (unsigned i = 0; i < table->columns; i++)
        swapArrays(&table->column[i]);
    table->rows = table->column[0].count;
    table->isKnown = 1;
    table->tries = 0;
    table->changes++;
}

static int copyArray(topColumn *column, const struct event_handler_args *args)
{
    const struct dbr_time_string *head = args->dbr; /* dbr_time_double begins in the same way */
    unsigned count = (unsigned)args->count;

    if (isText(column)) {
        if (ebpfMonArrayGrow(&column->newTexts, &column->newRoom, count + 1u, 64, MAX_STRING_SIZE))
            return -1;
        memcpy(column->newTexts, dbr_value_ptr(args->dbr, DBR_TIME_STRING), count * (size_t)MAX_STRING_SIZE);
        for (unsigned i = 0; i < count; i++)
            column->newTexts[i][MAX_STRING_SIZE - 1] = 0;
    } else {
        if (ebpfMonArrayGrow(&column->newNumbers, &column->newRoom, count + 1u, 64, sizeof(double)))
            return -1;
        memcpy(column->newNumbers, dbr_value_ptr(args->dbr, DBR_TIME_DOUBLE), count * sizeof(double));
    }
    column->newCount = count;
    column->newSeverity = head->severity;
    column->newTime = head->stamp;
    return 0;
}

static void onArray(struct event_handler_args args)
{
    topColumn *column = args.usr;

    if (args.status == ECA_NORMAL && args.dbr && copyArray(column, &args) == 0)
        column->isNew = 1;
    if (--column->table->waiting == 0 && !column->pv->pvs->isPaused)
        takeAnswers(column->table);
}

int topTableOpen(topTable *table, const topTableSpec *spec, topPvs *pvs)
{
    table->spec = spec;
    table->sortBy = -1;
    for (unsigned i = 0; i < TOP_COLUMNS_MAX && spec->column[i].name; i++) {
        const topColumnSpec *columnSpec = &spec->column[i];
        topColumn *column = &table->column[table->columns++];

        column->table = table;
        column->pv = topPvsGet(pvs, columnSpec->name,
                               columnSpec->format == topAsText || columnSpec->format == topAsTime ? topTexts
                                                                                                  : topNumbers);
        if (!column->pv)
            return -1;
    }
    return 0;
}

void topTableClose(topTable *table)
{
    for (unsigned i = 0; i < table->columns; i++) {
        free(table->column[i].texts);
        free(table->column[i].newTexts);
        free(table->column[i].numbers);
        free(table->column[i].newNumbers);
    }
}

static int isStale(const topTable *table)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (table->column[i].seen != table->column[i].pv->changes)
            return 1;
    return 0;
}

static int isConnected(const topTable *table)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (!table->column[i].pv->isConnected)
            return 0;
    return 1;
}

int topTableRead(topTable *table)
{
    if (!isStale(table))
        return !table->waiting && table->isKnown;
    if (table->waiting || !isConnected(table) || table->column[0].pv->pvs->isPaused)
        return 0;
    for (unsigned i = 0; i < table->columns; i++) {
        topColumn *column = &table->column[i];

        column->isNew = 0;
        if (column->seen != column->pv->changes && i)
            table->tries = 0; /* there is a new change */
        column->seen = column->pv->changes;
        /* Each request gets an answer. If the server ends, the answer is ECA_DISCONN. */
        if (ca_array_get_callback(isText(column) ? DBR_TIME_STRING : DBR_TIME_DOUBLE, 0, column->pv->channel, onArray,
                                  column) == ECA_NORMAL)
            table->waiting++;
    }
    ca_flush_io();
    return 0;
}

int topTableIsValid(const topTable *table)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (table->column[i].severity == INVALID_ALARM)
            return 0;
    return table->isKnown;
}

void topTableGetRecord(const topTable *table, unsigned row, char *name, size_t size)
{
    name[0] = 0;
    if (table->spec->records < 0 || row >= table->rows)
        return;
    epicsSnprintf(name, size, "%s", table->column[table->spec->records].texts[row]);
    if (!topTableIsCut(name))
        name[strcspn(name, ".@")] = 0;
}

int topTableIsCut(const char *name)
{
    return strcmp(name + strcspn(name, ".@"), CUT) == 0; /* behind a field or an IOC it is these that are cut */
}

/* --- which rows, in which order ---------------------------------------------------------------------- */

static void lowerText(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

static int containsText(const char *text, const char *filter)
{
    char small[MAX_STRING_SIZE], pattern[TOP_FILTER_SIZE];

    epicsSnprintf(small, sizeof(small), "%s", text);
    epicsSnprintf(pattern, sizeof(pattern), "%s", filter);
    lowerText(small);
    lowerText(pattern);
    return strpbrk(pattern, "*?") ? epicsStrGlobMatch(small, pattern) : strstr(small, pattern) != NULL;
}

static int matchesFilter(const topTable *table, unsigned row, const char *filter)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (isText(&table->column[i]) && containsText(table->column[i].texts[row], filter))
            return 1;
    return 0;
}

static int isBefore(const topTable *table, unsigned a, unsigned b)
{
    const topColumn *column = &table->column[table->sortBy];
    int order;

    if (isText(column))
        order = strcmp(column->texts[a], column->texts[b]);
    else /* numbers: the largest first */
        order = (column->numbers[a] < column->numbers[b]) - (column->numbers[a] > column->numbers[b]);
    return table->isReversed ? order > 0 : order < 0;
}

static void sortRows(const topTable *table, unsigned *rows, unsigned count)
{
    for (unsigned i = 1; i < count; i++) { /* insertion sort: it is stable, and a table has at most 400 rows */
        unsigned row = rows[i], k = i;

        for (; k > 0 && isBefore(table, row, rows[k - 1]); k--)
            rows[k] = rows[k - 1];
        rows[k] = row;
    }
}

/* The bytes of a name that are known. If it is not cut, its end is one of them. */
static size_t countKnown(const char *name)
{
    return topTableIsCut(name) ? strlen(name) - strlen(CUT) : strlen(name) + 1;
}

static int mayBeSame(const char *a, const char *b)
{
    size_t known = countKnown(a), other = countKnown(b);

    return strncmp(a, b, other < known ? other : known) == 0;
}

unsigned topTableChoose(const topTable *table, const char *filter, const char *record, unsigned *rows, unsigned max)
{
    unsigned count = 0;
    char name[MAX_STRING_SIZE];

    for (unsigned row = 0; row < table->rows && count < max; row++) {
        if (filter[0] && !matchesFilter(table, row, filter))
            continue;
        topTableGetRecord(table, row, name, sizeof(name));
        if (record[0] && !mayBeSame(name, record))
            continue;
        rows[count++] = row;
    }
    if (table->sortBy >= 0)
        sortRows(table, rows, count);
    else if (table->isReversed)
        for (unsigned i = 0; i < count / 2; i++) {
            unsigned row = rows[i];

            rows[i] = rows[count - 1 - i];
            rows[count - 1 - i] = row;
        }
    return count;
}

/* --- a cell ------------------------------------------------------------------------------------------ */

/* What the column of this flag has; 0: there is none. */
static int getFlag(const topTable *table, unsigned row, topFlag flag)
{
    for (unsigned i = 0; i < table->columns; i++)
        if (table->spec->column[i].flag == flag && table->column[i].numbers[row] != 0)
            return (int)table->column[i].numbers[row];
    return 0;
}

static void formatNumber(double number, topFormat format, char *text, size_t size)
{
    if (!isfinite(number) || (format == topAsCount && number < 0)) /* not known */
        epicsSnprintf(text, size, "-");
    else
        epicsSnprintf(text, size, "%.*f", format >= topAsThousandths ? 3 : format == topAsTenths,
                      format == topAsMillis ? number / 1000 : number);
}

void topTableFormat(const topTable *table, unsigned row, unsigned column, int isBrief, char *text, size_t size)
{
    const topColumn *it = &table->column[column];
    topFormat format = table->spec->column[column].format;
    int isFirstNumber = !isText(it) && (column == 0 || isText(&table->column[column - 1]));

    if (format == topAsTime && isBrief && strlen(it->texts[row]) == strlen("2026-11-21 12:13:19.283144"))
        epicsSnprintf(text, size, "%.12s", it->texts[row] + strlen("2026-11-21 "));
    else if (isText(it))
        epicsSnprintf(text, size, "%s", it->texts[row]);
    else if (isFirstNumber && getFlag(table, row, topFlagAtLeast)) {
        text[0] = '>';
        text[1] = '=';
        formatNumber(it->numbers[row], format, text + 2, size - 2);
    } else
        formatNumber(it->numbers[row], format, text, size);
}

/* The beginnings of results (ebpfMonPutOutcome) of puts that were not made as they were sent. */
static int isOther(const char *result)
{
    static const char *const others[] = {"became", "denied", "fails", "lost", "answered OK"};

    if (result[0] == 'x') /* of puts in one row: how many, then the result of the newest */
        result += strcspn(result, " ") + 1;
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strncmp(result, others[i], strlen(others[i])) == 0)
            return 1;
    return 0;
}

topStyle topTableGetStyle(const topTable *table, unsigned row)
{
    int severity = getFlag(table, row, topFlagSeverity);

    for (unsigned i = 0; i < table->columns && !severity; i++)
        severity = table->spec->column[i].flag == topFlagResult && isOther(table->column[i].texts[row]);

    return severity == MAJOR_ALARM || getFlag(table, row, topFlagMajor) ? topMajor :
           severity || getFlag(table, row, topFlagMinor) ? topMinor : (topStyle)table->spec->severity;
}
