/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user can see: tables, the items of the header, texts, and the views that show them. Data only. */
#ifndef TOPVIEWS_H
#define TOPVIEWS_H

#include "topTable.h"

/* Indexes of topTableSpecs; topTables is their number. */
enum {
    topPuts, topAutoPuts, topBadPuts, topIocs, topHealth, topDelays, topScans, topRecords, topChains, topUnfound,
    topLosses, topTables
};

extern const topTableSpec topTableSpecs[topTables];

/* A scalar in the header: "label value unit", in the colour of its severity. */
typedef struct {
    const char *label, *name, *unit;
    topKind     kind;
    topFormat   format;
    int         line;    /* line of the header */
    int         isReason; /* shown only while the item before it is not 0 */
} topItemSpec;

#define TOP_HEADER_LINES 4
extern const topItemSpec topItemSpecs[];
extern const unsigned topItems;

/* Texts of several lines: indexes of topTextSpecs, and their number. */
enum { topEvents, topStacks, topKept, topTextCount };

typedef struct {
    const char *title, *name;
} topTextSpec;

extern const topTextSpec topTextSpecs[topTextCount];

#define TOP_VIEW_TABLES 4
#define TOP_NONE (-1)

typedef struct {
    const char *name;    /* for the option -v */
    char        key;     /* that shows this view */
    const char *what;    /* its line in the help */
    int         table[TOP_VIEW_TABLES]; /* ends with TOP_NONE, or is full */
    int         text[3]; /* ends with TOP_NONE */
    int         hasHistogram;
} topViewSpec;

enum { topViewOverview, topViewChains = 6 };

extern const topViewSpec topViewSpecs[];
extern const unsigned topViews;

#endif
