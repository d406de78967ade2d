/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of text with styles, made before they are drawn or printed. Whatever comes from other programs is made harmless
 * here (common/text.h): valid UTF-8, no control character. */
#ifndef TOPSHEET_H
#define TOPSHEET_H

#include <stddef.h>
#include <stdio.h>

#include <compilerDependencies.h>

typedef enum {
    topPlain, topMinor, topMajor, topInvalid, /* as alarm severities are numbered */
    topTitle, topHeading, topDim, topBar,
    topStyles
} topStyle;

#define TOP_SELECTED 0x100 /* or'ed to a style */

typedef struct { /* neighbouring characters of one style */
    size_t   at, length; /* in text */
    unsigned style;
} topRun;

typedef struct {
    char    *text;
    topRun  *run;
    size_t  *line;       /* index of each line's first run */
    size_t   length, runs, lines;
    size_t   textRoom, runRoom, lineRoom;
    int      columns;    /* of the line that is being made */
    int      isShort;    /* no memory: something is missing */
} topSheet;

void topSheetClear(topSheet *sheet);
void topSheetFree(topSheet *sheet);

void topSheetAdd(topSheet *sheet, unsigned style, const char *format, ...) EPICS_PRINTF_STYLE(3, 4);
/* Blanks up to this column. */
void topSheetFill(topSheet *sheet, unsigned style, int column);
void topSheetEndLine(topSheet *sheet);

/* The runs of a line: index of the first, and of the one behind the last. */
size_t topSheetFirstRun(const topSheet *sheet, size_t line);
size_t topSheetEndRun(const topSheet *sheet, size_t line);

/* Prints all lines, without styles and without blanks at their ends. */
void topSheetPrint(const topSheet *sheet, FILE *out);

/* How many columns of a terminal a clean text takes, and how many of its bytes fit into so many. */
int topTextWidth(const char *text, size_t length);
size_t topTextFit(const char *text, size_t length, int columns);

#endif
