/* SPDX-License-Identifier: BSD-3-Clause */
/* What there is to see: tables, the items of the header, texts, and the views made of them. Data only. */
#ifndef TOPVIEWS_H
#define TOPVIEWS_H

#include "topTable.h"

/* In the order of topTableIs_. */
enum {
    topPuts, topAutoPuts, topBadPuts, topIocs, topHealth, topDelays, topScans, topRecords, topChains, topUnfound, topLosses,
    topTables
};

extern const topTableIs topTableIs_[topTables];

/* A scalar of the header: "label value unit", in the colour of its severity. */
typedef struct {
    const char *label, *name, *unit;
    topKind     kind;
    topFormat   format;
    int         line;    /* of the header */
} topItemIs;

#define TOP_HEADER_LINES 4
extern const topItemIs topItemIs_[];
extern const unsigned topItems;

/* A text of several lines. */
enum { topEvents, topStacks, topKept, topTexts_ };

typedef struct {
    const char *title, *name;
} topTextIs;

extern const topTextIs topTextIs_[topTexts_];

#define TOP_VIEW_TABLES 4
#define TOP_NONE (-1)

typedef struct {
    const char *name;    /* for -v */
    char        key;
    const char *what;    /* for the help */
    int         table[TOP_VIEW_TABLES]; /* up to TOP_NONE */
    int         text[3]; /* up to TOP_NONE */
    int         hasHistogram;
} topViewIs;

enum { topViewOverview, topViewChains = 6 };

extern const topViewIs topViewIs_[];
extern const unsigned topViews;

#endif
