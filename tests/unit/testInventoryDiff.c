/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two inventories, and texts that are no inventory; what the commands of the module refuse. */
#include <stdio.h>
#include <string.h>

#include <epicsExport.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <iocsh.h>
#include <testMain.h>

#include "inventory/inventoryDiff.h"
#include "inventory/recSync.h"
#include "module/modules.h"

extern REGISTRAR EPICS_EXPORT_PFUNC(ebpfMonInventoryRegistrar);

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

static char lastError[400]; /* the thread of errlog writes it; it is read after errlogFlush */

static void noteError(void *arg, const char *message)
{
    snprintf(lastError, sizeof(lastError), "%s", message);
}

/* A test that fails if the command succeeds, or prints another text. */
static void expectError(const char *command, const char *error)
{
    int status = iocshCmd(command);

    errlogFlush();
    testOk(status != 0 && strstr(lastError, error), "%s: %s", command, lastError);
}

/* No monitor is in this program, so the module is not started. */
static void testCommands(void)
{
    const ebpfMonPv *pv;

    eltc(0);
    errlogAddListener(noteError, NULL);
    EPICS_EXPORT_PFUNC(ebpfMonInventoryRegistrar)();
    expectError("ebpfMonRecSync perhaps", "ebpfMonRecSync: say on or off\n");
    expectError("ebpfMonRecSync on 65536", "ebpfMonRecSync: the port is a number up to 65535\n");
    expectError("ebpfMonInventory", "ebpfMonInventory: give the path");
    expectError("ebpfMonInventoryDiff a.json", "ebpfMonInventoryDiff: give two files");
    expectError("ebpfMonInventoryKeep /k.json 60 abc", "ebpfMonInventoryKeep: keep is the number of older files");
    expectError("ebpfMonInventoryKeep /k.json 60 10x", "ebpfMonInventoryKeep: keep is the number of older files");
    expectError("ebpfMonInventoryKeep /k.json 60 -1", "ebpfMonInventoryKeep: keep is the number of older files");
    expectError("ebpfMonInventoryKeep /k.json 60 1001", "ebpfMonInventoryKeep: keep is the number of older files");
    expectError("ebpfMonInventory /a.json", "ebpfMonInventory: ebpfMon does not run");
    expectError("ebpfMonInventoryKeep", "ebpfMonInventoryKeep: ebpfMon does not run");
    testOk1(iocshCmd("ebpfMonInventoryKeep /k.json 60 \"\"") == 0 && iocshCmd("ebpfMonInventoryKeep off") == 0);
    testOk1(iocshCmd("ebpfMonRecSync off 0 SECTOR") == 0);
    eltc(1);
    pv = ebpfMonModulesFindPv("RECSYNC_MSG", 0);
    testOk1(pv && strcmp((const char *)pv->row(NULL, 0) + pv->offset, EBPFMON_NO_RECSYNC) == 0);
}

MAIN(testInventoryDiff)
{
    testPlan(29);
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
    testCommands();
    return testDone();
}
