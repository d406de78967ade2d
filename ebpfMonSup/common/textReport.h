/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines and tables for people. They are made in memory, under the locks that they need, and printed later without a
 * lock, because a terminal may be slow, or stopped by its user. One thread at a time for each report.
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
    int width;         /* characters; negative: flush left; 0: as wide as the text */
} ebpfMonReportColumn;

/* Makes a report. NULL: no memory; then the functions below do nothing, and Print tells so. */
ebpfMonTextReport *ebpfMonTextReportNew(void);

/* Adds text; a line ends with "\n". Here and in cells, characters that are not shown are escaped (common/text.h). */
void ebpfMonTextReportAdd(ebpfMonTextReport *report, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

/* Begins a table with the line of its titles. The next cells belong to it, until the next table begins. "columns" must
 * outlive the report. */
void ebpfMonTextReportBeginTable(ebpfMonTextReport *report, const ebpfMonReportColumn *columns, unsigned count);

/* Adds the next cell of the table, in the width of its column. After the last cell of a row the line ends. */
void ebpfMonTextReportAddCell(ebpfMonTextReport *report, const char *format, ...) EPICS_PRINTF_STYLE(2, 3);

/* Returns the text so far, which belongs to the report. */
const char *ebpfMonTextReportGetText(const ebpfMonTextReport *report);

/* Prints to stdout (of this thread, as iocsh redirects it), and frees the report. */
void ebpfMonTextReportPrint(ebpfMonTextReport *report);
void ebpfMonTextReportFree(ebpfMonTextReport *report);

#endif
