/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of the monitor, what the user wants to see of them, and the page that is made of both. One thread. */
#ifndef EBPFMON_TOPPAGE_H
#define EBPFMON_TOPPAGE_H

#include "topTable.h"

/* --- views ---
 *
 * What a user can see: tables, the items of the header, texts, and the views that show them. Data only.
 */

/* Indexes of topTableSpecs; topTables is their number. */
enum {
    topPuts, topAutoPuts, topBadPuts, topIocs, topHealth, topDelays, topScans, topRecords, topChains, topUnfound,
    topSubscriptions, topLosses, topTables
};

/* A scalar in the header: "label value unit", in the colour of its severity. */
typedef struct {
    const char *label, *name, *unit;
    topKind     kind;
    topFormat   format;
    int         line;    /* line of the header */
    /* when it is shown: while it is in alarm, or all items are; while the item before it is not 0; always */
    enum { topIfAlarm, topIfItemBefore, topAlways } when;
} topItemSpec;
extern const topItemSpec topItemSpecs[];

/* Texts of several lines: indexes of topTextSpecs, and their number. */
enum { topEvents, topStacks, topKept, topFound, topQuestion, topWhy, topTextCount };

#define TOP_VIEW_TABLES 4
#define TOP_NONE (-1)

typedef struct {
    const char *name;    /* for the option -v */
    char        key;     /* that shows this view */
    const char *what;    /* its line in the help */
    int         table[TOP_VIEW_TABLES]; /* ends with TOP_NONE, or is full */
    int         text[3]; /* ends with TOP_NONE */
    int         hasHistogram;
    int         hasAllItems; /* the whole header, also what is normal */
} topViewSpec;

enum { topViewOverview, topViewChains = 6, topViewWhy = 11 }; /* indexes of topViewSpecs */

extern const topViewSpec topViewSpecs[];
extern const unsigned topViews;

/* --- pages --- */

/* The values of the monitor. */
typedef struct {
    topPvs   pvs;
    topTable table[topTables];
    topTable histogram;
    topPv   *root;         /* CHAIN_HIST_ROOT */
    topPv   *item[64];     /* one for each of topItemSpecs */
    topPv   *text[topTextCount];
    topPv   *state;
    epicsTimeStamp lostAt; /* since when the monitor does not answer; 0: it answers, or never did */
} topData;

/* What the user wants to see. */
typedef struct {
    unsigned view;         /* index of topViewSpecs */
    unsigned focus;        /* index of the view's table in which the cursor is; behind the last one: its texts */
    unsigned cursor;       /* the row of this table, counted as shown */
    unsigned scroll;       /* so many lines of a text, or of the help, are above the screen */
    char     record[64];   /* show only this record; empty: all */
    char     filter[TOP_FILTER_SIZE];
    int      isPaused;
    int      isHelp;
    int      columns;      /* of the screen; 0: lines have any length */
} topLook;

/* Connects all PVs. "data" is all zero, and must not be moved. 0, or -1 after a message. */
int topDataOpen(topData *data, const char *prefix);
void topDataClose(topData *data);

/* Takes values that have come, and requests tables that have changed; does not wait. Nonzero: all values are there
 * and up to date. */
int topDataRead(topData *data);

/* Lists the tables of the view, or those about one record. Returns their number. */
unsigned topPageListTables(const topLook *look, int tables[TOP_VIEW_TABLES]);

/* Nonzero: the view has texts. They come after its tables: "focus" is the number of tables when the user looks at
 * them. */
int topPageHasTexts(const topLook *look);

/* Returns the table in which the cursor is; sets "rows" to its rows in the shown order, and *count to their number.
 * NULL: the user looks at texts, or at the help. */
const topTable *topPageGetFocus(const topData *data, const topLook *look, unsigned *rows, unsigned max,
                                unsigned *count);

#define TOP_ALL_LINES 100000

/* Makes the page. "lines": lines at most; TOP_ALL_LINES: no limit, and no cursor. "rows": rows of each table at
 * most. If look->scroll is behind the last screen of a text, it becomes that of the last screen. */
void topPageMake(const topData *data, topLook *look, unsigned lines, unsigned rows, topSheet *sheet);

#endif
