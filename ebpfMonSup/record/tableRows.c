/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <alarm.h>

#include "record/pvTable.h"
#include "record/tableRows.h"

/* --- puts that are shown --- */

/* Returns how many rows of "now" stand before those that were shown, of which the first "gone" are no more; "count", if
 * the others are not as they were. */
static unsigned findNew(const ebpfMonShownPuts *shown, const uint64_t *now, unsigned count, unsigned gone)
{
    unsigned n = gone;

    while (n < count && (shown->count <= gone || now[n] != shown->serial[gone]))
        n++;
    if (n < count && (count - n > shown->count - gone ||
                      memcmp(now + n, shown->serial + gone, (count - n) * sizeof(*now)) != 0))
        return count;
    return n;
}

unsigned ebpfMonShownPutsUpdate(ebpfMonShownPuts *shown, const ebpfMonPublished *published, const ebpfMonPv *pv,
                                unsigned max, unsigned *moved)
{
    uint64_t now[EBPFMON_PUTS_MAX];
    const ebpfMonPut *put;
    unsigned count = 0, n;

    while (count < max && count < EBPFMON_PUTS_MAX && (put = pv->row(published, count)) != NULL)
        now[count++] = put->serial;
    *moved = n = findNew(shown, now, count, 0);
    if (n == count && count > 1 && (n = findNew(shown, now, count, 1)) < count)
        *moved = n - 1;
    memcpy(shown->serial, now, count * sizeof(*now));
    shown->count = count;
    return n;
}

/* --- rows --- */

#define CELL_SIZE EBPFMON_TEXT_SIZE /* the longest text of a row is a value */

/* A number that is not known of every row is a text: only a text can be empty, and displays show a NaN as "NaN". */
static ebpfMonCellsType findType(const ebpfMonPv *pv)
{
    if (pv->gaps)
        return ebpfMonCellsText;
    switch (pv->cell) {
    case ebpfMonCellInt:
    case ebpfMonCellUnsigned:
        return ebpfMonCellsInt;
    case ebpfMonCellCount:
        return ebpfMonCellsLong;
    case ebpfMonCellDouble:
        return ebpfMonCellsDouble;
    default:
        return ebpfMonCellsText;
    }
}

static const size_t cellSizes[] = { sizeof(char *), sizeof(epicsInt32), sizeof(epicsInt64), sizeof(double) };

int ebpfMonTableCellsInit(ebpfMonTableCells *column)
{
    int hasTime = column->pv->cell == ebpfMonCellTime, hasPuts = ebpfMonPvHasPuts(column->pv);

    column->type = findType(column->pv);
    column->cell.text = calloc(column->size, cellSizes[column->type]);
    if (hasTime)
        column->time = calloc(column->size, sizeof(column->time[0]));
    if (hasPuts)
        column->shown = calloc(1, sizeof(*column->shown));
    return column->cell.text && (column->time || !hasTime) && (column->shown || !hasPuts) ? 0 : -1;
}

void ebpfMonTableCellsFree(ebpfMonTableCells *column)
{
    for (unsigned i = 0; column->type == ebpfMonCellsText && column->cell.text && i < column->size; i++)
        free(column->cell.text[i]);
    free(column->cell.text);
    free(column->time);
    free(column->shown);
    column->cell.text = NULL;
    column->time = NULL;
    column->shown = NULL;
}

static void setText(char **cell, const char *text)
{
    if (*cell && strcmp(*cell, text) == 0)
        return;
    free(*cell);
    *cell = strdup(text);
}

/* Rounds to so many digits after the point: 9.999779 with three digits becomes 10. */
static double roundTo(double value, int digits)
{
    double scale = pow(10, digits);

    return isfinite(value) && fabs(value) < 1e15 / scale ? round(value * scale) / scale : value;
}

static void formatCell(const ebpfMonTableCells *column, const void *row, char *buf, size_t size)
{
    int digits = column->pv->cell == ebpfMonCellDouble ? column->precision : 0;

    if (!column->pv->gaps)
        ebpfMonPvText(column->pv, row, buf, size);
    else if (ebpfMonPvIsGap(column->pv, row))
        buf[0] = 0;
    else
        snprintf(buf, size, "%.*f", digits, column->scale * ebpfMonPvDouble(column->pv, row));
}

static void copyCell(ebpfMonTableCells *column, const void *row, unsigned i)
{
    char text[CELL_SIZE];

    if (column->time) {
        column->time[i] = *(const epicsTimeStamp *)((const char *)row + column->pv->offset);
        return;
    }
    switch (column->type) {
    case ebpfMonCellsText:
        formatCell(column, row, text, sizeof(text));
        setText(&column->cell.text[i], text);
        break;
    case ebpfMonCellsInt:
        column->cell.integer[i] = (epicsInt32)ebpfMonPvInteger(column->pv, row);
        break;
    case ebpfMonCellsLong:
        column->cell.count[i] = ebpfMonPvInteger(column->pv, row);
        break;
    case ebpfMonCellsDouble:
        column->cell.real[i] = column->scale * ebpfMonPvDouble(column->pv, row);
        break;
    }
}

/* Sets time and severity as the records of the columns have them (ebpfMonDevBegin). 0: there are no values. */
static int setMoment(const ebpfMonPublished *published, const ebpfMonPv *pv, ebpfMonTableMoment *moment)
{
    const void *row = pv->row(published, 0);

    if (!pv->always && published->state != ebpfMonRunning && published->state != ebpfMonDegraded) {
        moment->time = published->time[ebpfMonGroupState];
        moment->severity = INVALID_ALARM;
        return 0;
    }
    moment->time = ebpfMonPvTime(published, pv, row);
    moment->severity = ebpfMonPvSeverity(published, pv);
    if (!ebpfMonPvMissing(published, pv, row))
        return 1;
    moment->severity = INVALID_ALARM;
    return 0;
}

/* In lists of puts the first row is the newest: a put of its day has the time of day only, others have
 * the date, too. Rows of other lists are in no order of time, and may be years old. */
static const char *chooseFormat(const ebpfMonTableCells *column, const epicsTimeStamp *time, const char *first)
{
    char day[sizeof(column->day)];

    if (!ebpfMonPvHasPuts(column->pv))
        return "%Y-%m-%d %H:%M:%S.%03f";
    epicsTimeToStrftime(day, sizeof(day), "%Y-%m-%d", time);
    return strcmp(day, first) ? "%m-%d %H:%M:%S.%03f" : "%H:%M:%S.%03f";
}

/* Only the first "fresh" rows are new. A time that is not known is an empty text. */
static void formatTimes(ebpfMonTableCells *column, unsigned rows, unsigned fresh)
{
    char first[sizeof(column->day)] = "", text[40];

    if (rows)
        epicsTimeToStrftime(first, sizeof(first), "%Y-%m-%d", &column->time[0]);
    if (strcmp(first, column->day) != 0)
        fresh = rows;
    memcpy(column->day, first, sizeof(first));
    for (unsigned i = 0; i < rows && i < fresh; i++) {
        const epicsTimeStamp *time = &column->time[i];

        text[0] = 0;
        if (time->secPastEpoch)
            epicsTimeToStrftime(text, sizeof(text), chooseFormat(column, time, first), time);
        setText(&column->cell.text[i], text);
    }
}

/* Moves all cells on by "count" rows. A text that moves out at the end gives its memory to one of the new rows. */
static void moveCells(ebpfMonTableCells *column, unsigned count)
{
    size_t size = cellSizes[column->type], rest = column->size - count;
    char *at = (char *)column->cell.text, *last[EBPFMON_PUTS_MAX];

    if (column->type == ebpfMonCellsText)
        memcpy(last, at + rest * size, count * size);
    memmove(at + count * size, at, rest * size);
    if (column->type == ebpfMonCellsText)
        memcpy(at, last, count * size);
    if (column->time)
        memmove(column->time + count, column->time, rest * sizeof(column->time[0]));
}

/* Copies the rows that are new. Returns how many; *rows gets the number of all. */
static unsigned copyRows(const ebpfMonPublished *published, ebpfMonTableCells *column, unsigned columns, unsigned *rows)
{
    const ebpfMonPv *pv = column[0].pv;
    unsigned i, c, moved, fresh = column[0].size;
    const void *row;

    if (column[0].shown) {
        fresh = ebpfMonShownPutsUpdate(column[0].shown, published, pv, column[0].size, &moved);
        for (c = 0; c < columns; c++)
            moveCells(&column[c], moved);
    }
    for (i = 0; i < fresh && (row = pv->row(published, i)) != NULL; i++)
        for (c = 0; c < columns; c++)
            copyCell(&column[c], row, i);
    *rows = column[0].shown ? column[0].shown->count : i;
    return i;
}

void ebpfMonTableRead(ebpfMonTableCells *column, unsigned columns, ebpfMonTableMoment *moment)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    unsigned fresh = 0;

    if (setMoment(published, column[0].pv, moment))
        fresh = copyRows(published, column, columns, &moment->rows);
    ebpfMonPublishedUnlock();
    if (!moment->time.secPastEpoch) /* nothing has happened yet, so any time is right: take the present */
        epicsTimeGetCurrent(&moment->time);
    for (unsigned c = 0; c < columns; c++) {
        if (column[c].time)
            formatTimes(&column[c], moment->rows, fresh);
        for (unsigned i = 0; column[c].type == ebpfMonCellsDouble && i < moment->rows; i++)
            column[c].cell.real[i] = roundTo(column[c].cell.real[i], column[c].precision);
    }
}
