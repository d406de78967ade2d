/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and tables for a person. They are made in memory, under the locks that they need, and printed afterwards
 * without: a terminal may be slow, or stopped by its user. One thread at a time per report.
 *
 *     static const ebpfMonReportColumn columns[] = {{"IOC", -24}, {"pid", 8}, {"note", 0}};
 *
 *     ebpfMonTextReportBeginTable(report, columns, 3);
 *     for each IOC
 *         ebpfMonTextReportAddCell(report, "%s", name), …AddCell(report, "%d", pid), …AddCell(report, "%s", note);
 */
#ifndef EBPFMON_TEXTREPORT_H
#define EBPFMON_TEXTREPORT_H

#include <compilerDependencies.h>

typedef struct ebpfMonTextReport ebpfMonTextReport;

typedef struct {
    const char *title;
    int width;         /* characters; negative: flush left; 0: as wide as the text is */
} ebpfMonReportColumn;

/* Without memory (NULL, too) the functions below do nothing, and Print says so. */
ebpfMonTextReport *ebpfMonTextReportNew(void);

/* Adds text; a line ends with its "\n". Here and in cells, what is not shown is escaped (common/text.h). */
void ebpfMonTextReportAdd(ebpfMonTextReport *report, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

/* Adds the line of titles. The cells that follow are of this table, until the next one begins. "columns" must stay. */
void ebpfMonTextReportBeginTable(ebpfMonTextReport *report, const ebpfMonReportColumn *columns, unsigned count);

/* Adds the next cell of the table, in the width of its column. After the last one of a row the line ends. */
void ebpfMonTextReportAddCell(ebpfMonTextReport *report, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

/* The text so far; belongs to the report. */
const char *ebpfMonTextReportGetText(const ebpfMonTextReport *report);

/* Prints to stdout (of the thread, as iocsh redirects it), and frees the report. */
void ebpfMonTextReportPrint(ebpfMonTextReport *report);
void ebpfMonTextReportFree(ebpfMonTextReport *report);

#endif
