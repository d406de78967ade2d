/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the monitor, how the user wants to see it, and the page made of both. */
#ifndef TOPPAGE_H
#define TOPPAGE_H

#include "topViews.h"

/* The values. */
typedef struct {
    topPvs   pvs;
    topTable table[topTables];
    topTable histogram;
    topPv   *root;         /* CHAIN_HIST_ROOT */
    topPv   *item[64];     /* by topItemIs_ */
    topPv   *text[topTexts_];
    topPv   *state;
    epicsTimeStamp lostAt; /* the monitor does not answer since then; 0: it does, or never did */
} topData;

/* How the user looks at it. */
typedef struct {
    unsigned view;
    unsigned focus;        /* which table of the view the cursor is in */
    unsigned cursor;       /* row of this table, as it is shown */
    unsigned scroll;       /* lines of a text that are above the screen */
    char     record[64];   /* the record that the user went into; empty: none */
    char     filter[TOP_FILTER_SIZE];
    int      isPaused;
    int      isHelp;
} topLook;

/* Connects all. 0, or -1 with a message. "data" is all zero, and stays where it is. */
int topDataOpen(topData *data, const char *prefix);
void topDataClose(topData *data);

/* Lets values come, and asks for tables that changed; does not wait. Nonzero: everything is there, of the present. */
int topDataRead(topData *data);

/* The tables of the view, or of the record that the user went into. Returns their number. */
unsigned topPageListTables(const topLook *look, int tables[TOP_VIEW_TABLES]);

/* The table with the cursor, and its rows as shown. NULL: the view has none. */
const topTable *topPageGetFocus(const topData *data, const topLook *look, unsigned *rows, unsigned max, unsigned *count);

#define TOP_ALL_LINES 100000

/* The page. "lines": how many there may be; TOP_ALL_LINES: no limit, and no cursor. "rows": of each table at most. */
void topPageMake(const topData *data, const topLook *look, unsigned lines, unsigned rows, topSheet *sheet);

#endif
