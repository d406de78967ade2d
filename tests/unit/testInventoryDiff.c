/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two inventories, and texts that are no inventory. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "inventory/inventoryDiff.h"

#define HEAD "{\"ioc\":\"vac\",\"time\":\"now\",\"pid\":1}\n"
#define RECORD(name, more) "{\"ioc\":\"vac\",\"record\":\"" name "\",\"type\":\"ai\"" more "}\n"

static void differ(const char *before, const char *after, const char *text, const char *what)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonInventoryDifference d;
    int status = ebpfMonInventoryDiffTexts(before, strlen(before), after, strlen(after), report, &d);

    ebpfMonTextReportAdd(report, "%u %u %u %u %u", d.added, d.removed, d.changed, d.same, d.odd);
    testOk(status == 0 && strcmp(ebpfMonTextReportGetText(report), text) == 0, "%s", what);
    testDiag("%s", ebpfMonTextReportGetText(report));
    ebpfMonTextReportFree(report);
}

MAIN(testInventoryDiff)
{
    testPlan(9);
    differ("", "", "0 0 0 0 0", "nothing");
    differ(HEAD RECORD("A", "") RECORD("B", ""), HEAD RECORD("B", "") RECORD("A", ""), "0 0 0 2 0", "another order");
    differ(RECORD("A", ""), RECORD("AB", ""), "- vac A (ai)\n+ vac AB (ai)\n1 1 0 0 0", "one came, one went");
    differ(RECORD("A", ",\"fields\":{\"EGU\":\"V\",\"HIGH\":\"1\"}"), RECORD("A", ",\"fields\":{\"EGU\":\"kV\",\"LOW\":\"2\"}"),
           "~ vac A (ai)\n    fields.EGU: \"V\" -> \"kV\"\n    fields.LOW: nothing -> \"2\"\n"
           "    fields.HIGH: \"1\" -> nothing\n0 0 1 0 0", "fields changed, came, went");
    differ(RECORD("A", ",\"aliases\":[\"X\",\"Y\"]"), RECORD("A", ",\"aliases\":[\"Y\",\"Z\"],\"info\":{\"archive\":\"m\"}"),
           "~ vac A (ai)\n    alias Z: nothing -> \"yes\"\n    info.archive: nothing -> \"m\"\n    alias X: \"yes\" -> nothing\n"
           "0 0 1 0 0", "aliases and info tags");
    differ(RECORD("A\\\"B", ""), RECORD("A\\\"B", ""), "0 0 0 1 0", "a quote in a name");
    differ("nonsense\n{}\n" RECORD("A", ""), RECORD("A", ""), "0 0 0 1 2", "lines that are no records");
    differ(RECORD("A", ",\"fields\":{\"EGU\":\"V\"}"), "{\"ioc\":\"vac\",\"record\":\"A\",\"ty\n",
           "~ {\"ioc\":\"vac\",\"record\":\"A\"\n    the line is not JSON in one of the files\n0 0 1 0 0", "a line that was torn");
    differ("{\"ioc\":\"va", "{\"ioc\":\"\\", "0 0 0 0 2", "lines that end in their keys");
    return testDone();
}
