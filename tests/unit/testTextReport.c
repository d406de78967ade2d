/* SPDX-License-Identifier: BSD-3-Clause */
/* common/textReport.h */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/textReport.h"

static void testTable(void)
{
    static const ebpfMonReportColumn columns[] = {{"name", -6}, {"n", 4}, {"note", 0}};
    ebpfMonTextReport *r = ebpfMonTextReportNew();

    testOk1(ebpfMonTextReportGetText(r)[0] == 0);
    ebpfMonTextReportAddCell(r, "no table"); /* nothing happens */
    ebpfMonTextReportAdd(r, "%s %d\n", "line", 1);
    ebpfMonTextReportBeginTable(r, columns, 3);
    ebpfMonTextReportAddCell(r, "a");
    ebpfMonTextReportAddCell(r, "%d", 12);
    ebpfMonTextReportAddCell(r, "%s", "ok");
    ebpfMonTextReportAddCell(r, "longer than its column");
    ebpfMonTextReportAddCell(r, "%d", 12345);
    ebpfMonTextReportAddCell(r, "%s", "");
    testOk(strcmp(ebpfMonTextReportGetText(r),
                  "line 1\nname      n note\na        12 ok\nlonger than its column 12345 \n") == 0,
           "%s", ebpfMonTextReportGetText(r));
    ebpfMonTextReportPrint(r);
}

static void testLong(void)
{
    static const ebpfMonReportColumn columns[] = {{"i", 9}};
    ebpfMonTextReport *r = ebpfMonTextReportNew();
    char line[12];
    unsigned wrong = 0;

    ebpfMonTextReportBeginTable(r, columns, 1);
    for (int i = 0; i < 5000; i++)
        ebpfMonTextReportAddCell(r, "%d", i);
    for (int i = 0; i < 5000; i++) {
        snprintf(line, sizeof(line), "%9d\n", i);
        wrong += strncmp(ebpfMonTextReportGetText(r) + 10 * (i + 1), line, 10) != 0;
    }
    testOk(!wrong && strlen(ebpfMonTextReportGetText(r)) == 50010, "a long report is whole: %u wrong", wrong);
    ebpfMonTextReportFree(r);
    ebpfMonTextReportFree(NULL);
    ebpfMonTextReportAdd(NULL, "without memory");
    testOk1(strcmp(ebpfMonTextReportGetText(NULL), "") == 0);
}

MAIN(testTextReport)
{
    testPlan(4);
    testTable();
    testLong();
    return testDone();
}
