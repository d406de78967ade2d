/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of text with styles, which are made before they are drawn or printed. All text is cleaned here
 * (common/text.h): it is valid UTF-8 without control characters, because it may come from other programs. One
 * thread. */
#ifndef TOPSHEET_H
#define TOPSHEET_H

#include <stddef.h>
#include <stdio.h>

#include <compilerDependencies.h>

typedef enum {
    topPlain, topMinor, topMajor, topInvalid, /* in the order of the alarm severities */
    topTitle, topHeading, topDim, topBar,
    topStyles
} topStyle;

#define TOP_SELECTED 0x100 /* a bit that can be added to a style */

typedef struct { /* neighbouring characters of one style */
    size_t   at, length; /* bytes of "text" */
    unsigned style;
} topRun;

typedef struct {
    char    *text;
    topRun  *run;
    size_t  *line;       /* for each line the index of the run behind its last one */
    size_t   length, runs, lines;
    size_t   textRoom, runRoom, lineRoom;
    int      columns;    /* columns of the present line so far */
    int      isShort;    /* something is missing, because there was no memory */
} topSheet;

void topSheetClear(topSheet *sheet);
void topSheetFree(topSheet *sheet);

/* Adds text to the present line. */
void topSheetAdd(topSheet *sheet, unsigned style, const char *format, ...) EPICS_PRINTF_STYLE(3, 4);
/* Adds blanks up to this column. */
void topSheetFill(topSheet *sheet, unsigned style, int column);
void topSheetEndLine(topSheet *sheet);

/* The runs of a line: the index of the first one, and of the one behind the last. */
size_t topSheetFirstRun(const topSheet *sheet, size_t line);
size_t topSheetEndRun(const topSheet *sheet, size_t line);

/* Prints all lines, without styles and without blanks at their ends. */
void topSheetPrint(const topSheet *sheet, FILE *out);

/* The number of columns that a clean text takes on a terminal. */
int topTextWidth(const char *text, size_t length);
/* The number of its bytes that fit into so many columns. */
size_t topTextFit(const char *text, size_t length, int columns);

#endif
