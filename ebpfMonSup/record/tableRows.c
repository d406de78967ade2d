/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>

#include "record/pvTable.h"
#include "record/tableRows.h"

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

int ebpfMonTableCellsInit(ebpfMonTableCells *column)
{
    static const size_t sizes[] = { sizeof(char *), sizeof(epicsInt32), sizeof(epicsInt64), sizeof(double) };

    column->type = findType(column->pv);
    column->cell.text = calloc(column->size, sizes[column->type]);
    if (column->pv->cell == ebpfMonCellTime)
        column->time = calloc(column->size, sizeof(column->time[0]));
    return column->cell.text && (column->time || column->pv->cell != ebpfMonCellTime) ? 0 : -1;
}

void ebpfMonTableCellsFree(ebpfMonTableCells *column)
{
    for (unsigned i = 0; column->type == ebpfMonCellsText && column->cell.text && i < column->size; i++)
        free(column->cell.text[i]);
    free(column->cell.text);
    free(column->time);
    column->cell.text = NULL;
    column->time = NULL;
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
        snprintf(buf, size, "%.*f", digits, ebpfMonPvDouble(column->pv, row));
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
        column->cell.real[i] = ebpfMonPvDouble(column->pv, row);
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

/* Formats times as time of day. A time of another day than the first one, which is the newest, gets the date, too. */
static void formatTimes(ebpfMonTableCells *column, unsigned rows)
{
    char first[16] = "", day[16], text[40];

    for (unsigned i = 0; i < rows; i++) {
        epicsTimeToStrftime(day, sizeof(day), "%Y-%m-%d", &column->time[i]);
        if (!i)
            memcpy(first, day, sizeof(first));
        epicsTimeToStrftime(text, sizeof(text), strcmp(day, first) ? "%m-%d %H:%M:%S.%03f" : "%H:%M:%S.%03f",
                            &column->time[i]);
        setText(&column->cell.text[i], text);
    }
}

void ebpfMonTableRead(ebpfMonTableCells *column, unsigned columns, ebpfMonTableMoment *moment)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    const ebpfMonPv *pv = column[0].pv;
    unsigned i, c;
    const void *row;

    if (setMoment(published, pv, moment)) {
        for (i = 0; i < column[0].size && (row = pv->row(published, i)) != NULL; i++)
            for (c = 0; c < columns; c++)
                copyCell(&column[c], row, i);
        moment->rows = i;
    }
    ebpfMonPublishedUnlock();
    if (!moment->time.secPastEpoch) /* nothing has happened yet, so any time is right: take the present */
        epicsTimeGetCurrent(&moment->time);
    for (c = 0; c < columns; c++) {
        if (column[c].time)
            formatTimes(&column[c], moment->rows);
        for (i = 0; column[c].type == ebpfMonCellsDouble && i < moment->rows; i++)
            column[c].cell.real[i] = roundTo(column[c].cell.real[i], column[c].precision);
    }
}
