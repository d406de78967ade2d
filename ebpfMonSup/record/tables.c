/* SPDX-License-Identifier: BSD-3-Clause */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dbAccess.h>
#include <dbStaticLib.h>
#include <epicsMutex.h>
#include <errlog.h>
#include <waveformRecord.h>

#include "record/devCommon.h"
#include "record/pvaServe.h"
#include "record/tables.h"

#define TAG         "ebpfMonTable"
#define COLUMNS_MAX 16
#define NAME_SIZE   80

typedef struct tableOf {
    struct tableOf   *next;
    char              name[NAME_SIZE];
    unsigned          columns;
    char              column[COLUMNS_MAX][40]; /* names of the fields */
    ebpfMonTableCells cells[COLUMNS_MAX];
    ebpfMonTableMoment moment;
    const waveformRecord *labels;
    char              group[40];               /* access security group of its columns */
    void             *served;                  /* from ebpfMonPvaServeAdd; NULL: it is not served */
} tableOf;

struct ebpfMonTables {
    epicsMutexId lock; /* guards the list against shell and callback threads */
    tableOf     *first;
    unsigned     missing; /* so many times in turn the PVA server was looked for in vain */
};

#define MISSING_LOOKS 5 /* about once a second; it starts after the monitor */

/* Finds a table by its name, or makes one. NULL: the name is too long, or there is no memory. */
static tableOf *findTable(ebpfMonTables *tables, const char *name)
{
    tableOf *table = tables->first;

    while (table && strcmp(table->name, name) != 0)
        table = table->next;
    if (table || strlen(name) >= sizeof(table->name) || !(table = calloc(1, sizeof(*table))))
        return table;
    strcpy(table->name, name);
    table->next = tables->first;
    tables->first = table;
    return table;
}

/* Nonzero: the PV may be a column of this table. All columns of a table must show the same rows of the same group,
 * because the first column tells their number and their time. */
static int canShow(const tableOf *table, const ebpfMonPv *pv)
{
    for (unsigned c = 0; c < COLUMNS_MAX; c++)
        if (table->cells[c].pv && (table->cells[c].pv->group != pv->group || table->cells[c].pv->row != pv->row))
            return 0;
    return 1;
}

/* Adds a record to its table. Returns ""; else why it cannot be added. */
static const char *addRecord(ebpfMonTables *tables, waveformRecord *prec, const char *tag)
{
    const ebpfMonDev *dev = prec->dpvt; /* NULL: a record without our device support; it has labels */
    char name[NAME_SIZE], column[40];
    int place, parts = sscanf(tag, "%79s %d %39s", name, &place, column);
    tableOf *table = parts >= 1 ? findTable(tables, name) : NULL;
    ebpfMonTableCells *cells;

    if (!table)
        return "must begin with the name of a table";
    if (parts == 1) {
        table->labels = prec;
        return "";
    }
    if (parts != 3 || place < 1 || place > COLUMNS_MAX || !dev)
        return "must be \"TABLE POSITION COLUMN\", with POSITION 1 to 16, and DTYP ebpfMon";
    cells = &table->cells[place - 1];
    if (cells->pv || !canShow(table, dev->pv))
        return "has the position of another column, or shows other rows";
    cells->pv = dev->pv;
    /* Tables are for people: what a record has in us, its table has in ms, with as many digits as the other times. */
    cells->scale = strcmp(prec->egu, "us") == 0 ? 1e-3 : 1;
    cells->precision = cells->scale < 1 ? 3 : prec->prec;
    cells->size = prec->nelm;
    strcpy(table->column[place - 1], column);
    snprintf(table->group, sizeof(table->group), "%s", prec->asg[0] ? prec->asg : "DEFAULT"); /* as asLib takes it */
    return "";
}

static void findColumns(ebpfMonTables *tables)
{
    DBENTRY entry;
    long status;

    dbInitEntry(pdbbase, &entry);
    if (!dbFindRecordType(&entry, "waveform"))
        for (status = dbFirstRecord(&entry); !status; status = dbNextRecord(&entry)) {
            const char *why = "";

            if (!dbIsAlias(&entry) && !dbFindInfo(&entry, TAG))
                why = addRecord(tables, entry.precnode->precord, dbGetInfoString(&entry));
            if (why[0])
                errlogSevPrintf(errlogMajor, "%s: info tag " TAG " %s\n", dbGetRecordName(&entry), why);
        }
    dbFinishEntry(&entry);
}

/* Counts the columns, and gets memory for the cells. 0: a column is missing, or there is no memory. */
static int prepareTable(tableOf *table)
{
    while (table->columns < COLUMNS_MAX && table->cells[table->columns].pv)
        table->columns++;
    for (unsigned c = 0; c < table->columns; c++) {
        table->cells[c].size = table->cells[0].size;
        if (ebpfMonTableCellsInit(&table->cells[c]))
            return 0;
    }
    for (unsigned c = table->columns; c < COLUMNS_MAX; c++)
        if (table->cells[c].pv)
            return 0;
    return table->columns > 0;
}

static void serveTable(tableOf *table)
{
    ebpfMonPvaColumn column[COLUMNS_MAX];
    const waveformRecord *labels = table->labels;

    if (!prepareTable(table)) {
        errlogSevPrintf(errlogMajor, "ebpfMon: table %s is not served: a column is missing before another one, or "
                        "there is no memory. Correct the info tags " TAG "\n", table->name);
        return;
    }
    for (unsigned c = 0; c < table->columns; c++) {
        column[c].name = column[c].label = table->column[c];
        if (labels && labels->ftvl == DBF_STRING && c < labels->nord)
            column[c].label = (const char *)labels->bptr + (size_t)c * MAX_STRING_SIZE;
    }
    table->served = ebpfMonPvaServeAdd(table->name, table->group, column, table->cells, table->columns);
}

static void postTable(tableOf *table)
{
    ebpfMonTableRead(table->cells, table->columns, &table->moment);
    ebpfMonPvaServePost(table->served, table->cells, table->columns, &table->moment);
}

ebpfMonTables *ebpfMonTablesNew(void)
{
    ebpfMonTables *tables = calloc(1, sizeof(*tables));

    if (tables)
        tables->lock = epicsMutexMustCreate();
    return tables;
}

void ebpfMonTablesServe(ebpfMonTables *tables)
{
    epicsMutexMustLock(tables->lock);
    findColumns(tables);
    for (tableOf *table = tables->first; table; table = table->next) {
        serveTable(table);
        if (table->served)
            postTable(table);
    }
    epicsMutexUnlock(tables->lock);
}

void ebpfMonTablesRemove(ebpfMonTables *tables)
{
    tableOf *table;

    epicsMutexMustLock(tables->lock);
    while ((table = tables->first) != NULL) {
        tables->first = table->next;
        if (table->served)
            ebpfMonPvaServeRemove(table->served);
        for (unsigned c = 0; c < table->columns; c++)
            ebpfMonTableCellsFree(&table->cells[c]);
        free(table);
    }
    epicsMutexUnlock(tables->lock);
}

void ebpfMonTablesPost(ebpfMonTables *tables, ebpfMonGroup group)
{
    epicsMutexMustLock(tables->lock);
    if (group == ebpfMonGroupState) {
        tables->missing = ebpfMonPvaServeIsMissing() ? tables->missing + 1 : 0;
        ebpfMonPublishedLock()->hasNoTables = tables->missing >= MISSING_LOOKS;
        ebpfMonPublishedUnlock();
    }
    for (tableOf *table = tables->first; table; table = table->next)
        if (table->served && table->cells[0].pv->group == (int)group)
            postTable(table);
    epicsMutexUnlock(tables->lock);
}
