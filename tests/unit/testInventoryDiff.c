/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two inventories, and texts that are no inventory. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "inventory/inventoryDiff.h"

#define IOC(time, pid, more) "{\"ioc\":\"vac\",\"time\":\"" time "\",\"pid\":" pid more "}\n"
#define VARIABLES(pairs) ",\"variables\":{" pairs "}"
#define HEAD IOC("now", "1", "")
#define RECORD(name, more) "{\"ioc\":\"vac\",\"record\":\"" name "\",\"type\":\"ai\"" more "}\n"

/* "text": the report, and how many records were added, removed, changed, and are the same; so of IOCs; odd lines. */
static void differMatching(const char *pattern, const char *before, const char *after, const char *text,
                           const char *what)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    ebpfMonInventoryDifference d;
    int status = ebpfMonInventoryDiffTexts(before, strlen(before), after, strlen(after), pattern, report, &d);

    ebpfMonTextReportAdd(report, "%u %u %u %u, %u %u %u %u, %u", d.records.added, d.records.removed, d.records.changed,
                         d.records.same, d.iocs.added, d.iocs.removed, d.iocs.changed, d.iocs.same, d.odd);
    testOk(status == 0 && strcmp(ebpfMonTextReportGetText(report), text) == 0, "%s", what);
    testDiag("%s", ebpfMonTextReportGetText(report));
    ebpfMonTextReportFree(report);
}

static void differ(const char *before, const char *after, const char *text, const char *what)
{
    differMatching("*", before, after, text, what);
}

MAIN(testInventoryDiff)
{
    testPlan(16);
    differ("", "", "0 0 0 0, 0 0 0 0, 0", "nothing");
    differ(RECORD("A", "") RECORD("B", ""), RECORD("B", "") RECORD("A", ""), "0 0 0 2, 0 0 0 0, 0", "another order");
    differ(RECORD("A", ""), RECORD("AB", ""), "- vac A (ai)\n+ vac AB (ai)\n1 1 0 0, 0 0 0 0, 0", "one came, one went");
    differ(RECORD("A", ",\"fields\":{\"EGU\":\"V\",\"HIGH\":\"1\"}"),
           RECORD("A", ",\"fields\":{\"EGU\":\"kV\",\"LOW\":\"2\"}"),
           "~ vac A (ai)\n    fields.EGU: \"V\" -> \"kV\"\n    fields.LOW: nothing -> \"2\"\n"
           "    fields.HIGH: \"1\" -> nothing\n0 0 1 0, 0 0 0 0, 0",
           "fields changed, came, went");
    differ(RECORD("A", ",\"aliases\":[\"X\",\"Y\"]"),
           RECORD("A", ",\"aliases\":[\"Y\",\"Z\"],\"info\":{\"archive\":\"m\"}"),
           "~ vac A (ai)\n    alias Z: nothing -> \"yes\"\n    info.archive: nothing -> \"m\"\n    alias X: \"yes\" -> "
           "nothing\n"
           "0 0 1 0, 0 0 0 0, 0",
           "aliases and info tags");
    differ(RECORD("A\\\"B", ""), RECORD("A\\\"B", ""), "0 0 0 1, 0 0 0 0, 0", "a quote in a name");
    differ("nonsense\n{}\n" RECORD("A", ""), RECORD("A", ""), "0 0 0 1, 0 0 0 0, 2", "lines that are no records");
    differ(RECORD("A", ",\"fields\":{\"EGU\":\"V\"}"), "{\"ioc\":\"vac\",\"record\":\"A\",\"ty\n",
           "~ {\"ioc\":\"vac\",\"record\":\"A\"\n    the line is not JSON in one of the files\n0 0 1 0, 0 0 0 0, 0",
           "a line that was torn");
    differ("{\"ioc\":\"va", "{\"ioc\":\"\\", "0 0 0 0, 0 0 0 0, 2", "lines that end in their keys");
    differ(IOC("now", "1", VARIABLES("\"PWD\":\"/a\",\"IOC_STARTED\":\"05:59:59\"")) RECORD("A", ""),
           IOC("then", "1", ",\"records\":7" VARIABLES("\"PWD\":\"/a\",\"IOC_STARTED\":\"06:00:00\"")) RECORD("A", ""),
           "0 0 0 1, 0 0 0 1, 0", "nobody asks for the time of a line, and the same process started once");
    differ(IOC("now", "1", ",\"version\":\"7.0.7\"" VARIABLES("\"PWD\":\"/a\",\"IOC_STARTED\":\"06:00\"")),
           IOC("then", "2", ",\"version\":\"7.0.8\"" VARIABLES("\"TOP\":\"/b\",\"IOC_STARTED\":\"07:00\"")),
           "~ vac (IOC)\n    version: \"7.0.7\" -> \"7.0.8\"\n    variables.TOP: nothing -> \"/b\"\n"
           "    variables.IOC_STARTED: \"06:00\" -> \"07:00\"\n    variables.PWD: \"/a\" -> nothing\n"
           "0 0 0 0, 0 0 1 0, 0",
           "an IOC that was restarted with another release, at another place");
    differ(RECORD("A", ""), HEAD RECORD("A", ""), "+ vac (IOC)\n0 0 0 1, 1 0 0 0, 0", "an IOC that came");
    differ(HEAD RECORD("A", ""), "", "- vac (IOC)\n- vac A (ai)\n0 1 0 0, 0 1 0 0, 0",
           "an IOC that went, before its records");
    differMatching("vac*", RECORD("A", ""), HEAD, "+ vac (IOC)\n- vac A (ai)\n0 1 0 0, 1 0 0 0, 0",
                   "a pattern that matches");
    differMatching("v", HEAD RECORD("A", "") "nonsense\n", RECORD("B", ""), "0 0 0 0, 0 0 0 0, 1",
                   "a pattern that does not");
    differ("{\"ioc\":\"vac\",\"time\":\"no", HEAD,
           "~ vac (IOC)\n    the line is not JSON in one of the files\n0 0 0 0, 0 0 1 0, 0", "a torn line of an IOC");
    return testDone();
}
