/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "common/array.h"
#include "common/text.h"
#include "common/textReport.h"

#define FIRST_ROOM 4096
#define ESCAPED    4 /* characters for a byte that is not shown (common/text.h) */

struct ebpfMonTextReport {
    char    *text;
    size_t   used, room; /* text[used] is 0, if there is a text */
    int      isCut;      /* nonzero: there was no memory */
    const ebpfMonReportColumn *column;
    unsigned columns, next;
};

ebpfMonTextReport *ebpfMonTextReportNew(void)
{
    return calloc(1, sizeof(ebpfMonTextReport));
}

void ebpfMonTextReportFree(ebpfMonTextReport *report)
{
    if (!report)
        return;
    free(report->text);
    free(report);
}

/* "copy": ebpfMonTextCopy or ebpfMonTextCopyLines, so that texts of other programs do not reach the terminal as they
 * are. */
static void addFormatted(ebpfMonTextReport *report, int (*copy)(char *dst, size_t size, const char *src),
                         const char *format, va_list ap)
{
    char *text = NULL;
    int length;

    if (!report || report->isCut)
        return;
    length = vasprintf(&text, format, ap);
    if (length >= 0 && ebpfMonArrayGrow(&report->text, &report->room, report->used + ESCAPED * (size_t)length + 1,
                                        FIRST_ROOM, 1) == 0) {
        copy(report->text + report->used, report->room - report->used, text);
        report->used += strlen(report->text + report->used);
    } else {
        report->isCut = 1;
    }
    if (length >= 0)
        free(text);
}

void ebpfMonTextReportAdd(ebpfMonTextReport *report, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    addFormatted(report, ebpfMonTextCopyLines, format, ap);
    va_end(ap);
}

/* Fills the column with blanks; its text was added since "begin". Ends the line after the last column. */
static void endCell(ebpfMonTextReport *report, size_t begin)
{
    const ebpfMonReportColumn *column = &report->column[report->next];
    size_t width = (size_t)abs(column->width), length = report->used - begin;
    int isLast = ++report->next == report->columns;

    if (length < width) {
        size_t blanks = width - length;

        ebpfMonTextReportAdd(report, "%*s", (int)blanks, "");
        if (column->width > 0 && !report->isCut) {
            memmove(report->text + begin + blanks, report->text + begin, length);
            memset(report->text + begin, ' ', blanks);
        }
    }
    ebpfMonTextReportAdd(report, isLast ? "\n" : " ");
    if (isLast)
        report->next = 0;
}

void ebpfMonTextReportAddCell(ebpfMonTextReport *report, const char *format, ...)
{
    size_t begin = report ? report->used : 0;
    va_list ap;

    if (!report || !report->columns)
        return;
    va_start(ap, format);
    addFormatted(report, ebpfMonTextCopy, format, ap);
    va_end(ap);
    endCell(report, begin);
}

void ebpfMonTextReportBeginTable(ebpfMonTextReport *report, const ebpfMonReportColumn *columns, unsigned count)
{
    if (!report)
        return;
    report->column = columns;
    report->columns = count;
    report->next = 0;
    for (unsigned i = 0; i < count; i++)
        ebpfMonTextReportAddCell(report, "%s", columns[i].title);
}

const char *ebpfMonTextReportGetText(const ebpfMonTextReport *report)
{
    return report && report->text ? report->text : "";
}

void ebpfMonTextReportPrint(ebpfMonTextReport *report)
{
    fputs(ebpfMonTextReportGetText(report), stdout);
    if (!report || report->isCut)
        errlogSevPrintf(errlogMinor, "ebpfMon: no memory for the rest of the report. Free some memory, then try "
                        "again\n");
    ebpfMonTextReportFree(report);
}
