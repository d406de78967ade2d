/* SPDX-License-Identifier: BSD-3-Clause */
/* shared/iocInventory.h with this program as the IOC. What is right says Base: its static database library prints
 * the same database. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dbAccess.h>
#include <dbBase.h>
#include <dbStaticLib.h>
#include <dbUnitTest.h>
#include <envDefs.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "shared/iocInventory.h"
#include <epicsVersion.h> /* the last one: it defines a macro with the name of a member (code/image.h) */

#define LONG_VALUES 700 /* elements of a constant whose text is longer than EBPFMON_FIELD_TEXT */

void testInventory_registerRecordDeviceDriver(struct dbBase *);

/* Fields of all kinds; a record gives those that its type has. */
static const char *const fields[] = {"DESC", "SCAN", "INP",  "FLNK", "EGU",  "HOPR", "LOPR", "PREC", "SMOO", "TSE",
                                     "OUT",  "DOL",  "DRVH", "ZNAM", "ONAM", "DTYP", "CALC", "INPA", "INPB", "INPC",
                                     "PHAS", "FTVL", "NELM", "ZRVL", "ZRST", "OMSL", "PINI", NULL};

static ebpfMonInventoryIoc ioc = { .name = "iocTest", .version = EPICS_VERSION_SHORT };
static unsigned records, compared, wrong;

static void setWrong(const ebpfMonInventoryRecord *record, const char *what, const char *ours, const char *theirs)
{
    wrong++;
    testDiag("%s, %s: \"%s\"; Base says \"%s\"", record->name, what, ours, theirs);
}

/* Two texts of one number are equal if they are read as the same number. */
static int isSame(const char *a, const char *b)
{
    char *endA, *endB;
    double x = strtod(a, &endA), y = strtod(b, &endB);

    return strcmp(a, b) == 0 || (*a && *b && !*endA && !*endB && x == y && !strchr(a, ' '));
}

static const char *findPair(const ebpfMonInventoryPair *pair, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(pair[i].name, name) == 0)
            return pair[i].value;
    return "";
}

static void compareFields(const ebpfMonInventoryRecord *record, DBENTRY *entry)
{
    for (const char *const *name = fields; *name; name++) {
        const char *theirs = dbFindField(entry, *name) ? NULL : dbGetString(entry);
        const char *ours = findPair(record->field, record->fields, *name);

        if (!isSame(ours, theirs ? theirs : ""))
            setWrong(record, *name, ours, theirs ? theirs : "(none)");
        compared += theirs && theirs[0];
    }
}

/* A tag without a text is not in the inventory. */
static void compareInfos(const ebpfMonInventoryRecord *record, DBENTRY *entry)
{
    unsigned count = 0;

    for (long end = dbFirstInfo(entry); !end; end = dbNextInfo(entry)) {
        const char *name = dbGetInfoName(entry), *theirs = dbGetInfoString(entry);
        const char *ours = count < record->infos ? record->info[count].value : "(none)";

        if (!theirs[0])
            continue;
        if (count >= record->infos || strcmp(record->info[count].name, name) != 0 || strcmp(ours, theirs) != 0)
            setWrong(record, name, ours, theirs);
        count++;
    }
    if (record->infos != count)
        setWrong(record, "info tags", "another number", "");
    compared += count;
}

static int hasAlias(const ebpfMonInventoryRecord *record, const char *name)
{
    for (unsigned i = 0; i < record->aliases; i++)
        if (strcmp(record->alias[i], name) == 0)
            return 1;
    return 0;
}

static void compareAliases(const ebpfMonInventoryRecord *record, void *precord)
{
    unsigned count = 0;
    DBENTRY entry;

    dbInitEntry(pdbbase, &entry);
    for (long noType = dbFirstRecordType(&entry); !noType; noType = dbNextRecordType(&entry))
        for (long end = dbFirstRecord(&entry); !end; end = dbNextRecord(&entry)) {
            if (!dbIsAlias(&entry) || entry.precnode->precord != precord)
                continue;
            count++;
            if (!hasAlias(record, dbGetRecordName(&entry)))
                setWrong(record, "alias", "(none)", dbGetRecordName(&entry));
        }
    dbFinishEntry(&entry);
    if (record->aliases != count)
        setWrong(record, "aliases", "another number", "");
    compared += count;
}

static int compareRecord(void *arg, const ebpfMonInventoryRecord *record)
{
    DBENTRY entry;

    records++;
    dbInitEntry(pdbbase, &entry);
    if (dbFindRecord(&entry, record->name)) {
        setWrong(record, "name", record->name, "(none)");
    } else {
        if (strcmp(dbGetRecordTypeName(&entry), record->type) != 0)
            setWrong(record, "type", record->type, dbGetRecordTypeName(&entry));
        compareInfos(record, &entry);
        compareAliases(record, entry.precnode->precord);
        compareFields(record, &entry);
    }
    dbFinishEntry(&entry);
    return 0;
}

static int stopAtSecond(void *arg, const ebpfMonInventoryRecord *record)
{
    return ++records == 2;
}

static int countRecords(void)
{
    DBENTRY entry;
    int count = 0;

    dbInitEntry(pdbbase, &entry);
    for (long noType = dbFirstRecordType(&entry); !noType; noType = dbNextRecordType(&entry))
        count += dbGetNRecords(&entry) - dbGetNAliases(&entry);
    dbFinishEntry(&entry);
    return count;
}

static void testRecords(void)
{
    ebpfMonInventorySink sink = { .record = compareRecord };
    ebpfMonInventoryIoc other = ioc;
    char why[200] = "?";

    testDiag("records");
    testOk(ebpfMonInventoryReadRecords(&ioc, fields, NULL, &sink, why, sizeof(why)) == 0 && !why[0], "all is read %s",
           why);
    testOk((int)records == countRecords(), "%u records", records);
    testOk(compared > 90 && !wrong, "%u fields, info tags and aliases are those of Base; %u are not", compared, wrong);
    sink.record = stopAtSecond;
    records = 0;
    testOk(ebpfMonInventoryReadRecords(&ioc, fields, NULL, &sink, why, sizeof(why)) == -1 && records == 2,
           "a sink that has enough ends the reading");
    other.pdbbase = (uint64_t)(uintptr_t)&other.pid - 1;
    testOk(ebpfMonInventoryReadRecords(&other, fields, NULL, &sink, why, sizeof(why)) == -1 && why[0],
           "no database: %s", why);
}

/* Base prints only 275 bytes of a link, so this one is not among "fields". */
static char longLink[2 * LONG_VALUES + 2];

static void setLongLink(void)
{
    DBENTRY entry;

    for (unsigned i = 0; i < LONG_VALUES; i++)
        memcpy(longLink + 2 * i, i ? ",7" : "[7", 2);
    strcpy(longLink + 2 * LONG_VALUES, "]");
    dbInitEntry(pdbbase, &entry);
    if (dbFindRecord(&entry, "I:WF.SIOL") || dbPutString(&entry, longLink))
        testAbort("the link cannot be set");
    dbFinishEntry(&entry);
}

static int keepLongLink(void *arg, const ebpfMonInventoryRecord *record)
{
    if (strcmp(record->name, "I:WF") == 0)
        snprintf(arg, sizeof(longLink), "%s", findPair(record->field, record->fields, "SIOL"));
    return 0;
}

static void testLongLink(void)
{
    const size_t kept = EBPFMON_FIELD_TEXT - sizeof("...");
    const char *const names[] = { "SIOL", NULL };
    char text[sizeof(longLink)] = "", why[200];
    ebpfMonInventorySink sink = { .record = keepLongLink, .arg = text };

    testDiag("a link with a long text");
    ebpfMonInventoryReadRecords(&ioc, names, NULL, &sink, why, sizeof(why));
    testOk(strlen(text) == EBPFMON_FIELD_TEXT - 1 && strncmp(text, longLink, kept) == 0 &&
           strcmp(text + kept, "...") == 0, "is cut: %u bytes", (unsigned)strlen(text));
}

static int countOnly(void *arg, const ebpfMonInventoryRecord *record)
{
    return ++records >= 10000; /* enough: something is wrong */
}

/* The reading fails with this text, and passes no more records than there are. */
static int isRefusedWith(const char *text)
{
    const ebpfMonInventorySink sink = { .record = countOnly };
    char why[200] = "?";
    int status;

    records = 0;
    status = ebpfMonInventoryReadRecords(&ioc, fields, NULL, &sink, why, sizeof(why));
    testDiag("%u records, \"%s\"", records, why);
    return status == -1 && strstr(why, text) && records <= ioc.cat->count;
}

/* The lists of a hostile IOC have no end, after its database was read. */
static void testEndless(void)
{
    dbRecordType *many = NULL, *none = NULL;
    ELLNODE *first, *second;
    ELLLIST kept;
    DBENTRY entry;

    testDiag("lists without an end");
    dbInitEntry(pdbbase, &entry);
    for (long end = dbFirstRecordType(&entry); !end; end = dbNextRecordType(&entry)) {
        many = ellCount(&entry.precordType->recList) > 1 ? entry.precordType : many;
        none = ellCount(&entry.precordType->recList) ? none : entry.precordType;
    }
    dbFinishEntry(&entry);
    kept = many->recList;
    first = ellFirst(&many->recList);
    second = ellNext(first);
    many->recList.count = 2000000;
    first->next = first;
    testOk(isRefusedWith("changed while it was read"), "a record that is followed by itself");
    first->next = second;
    many->recList = kept;
    none->recList = kept;
    testOk(isRefusedWith("more than the"), "records that are in two lists");
    memset(&none->recList, 0, sizeof(none->recList));
    testOk(!isRefusedWith(""), "all is as before");
}

/* --- The environment --- */

static struct { char name[40], value[200]; } variable[64];
static unsigned variables;

static void keepVariable(void *arg, const char *name, const char *value)
{
    if (variables < 64) {
        snprintf(variable[variables].name, sizeof(variable[0].name), "%s", name);
        snprintf(variable[variables++].value, sizeof(variable[0].value), "%s", value);
    }
}

/* The value of a variable; NULL: it was not passed. "times": how often it was. */
static const char *passed(const char *name, unsigned *times)
{
    const char *value = NULL;

    *times = 0;
    for (unsigned i = 0; i < variables; i++)
        if (strcmp(variable[i].name, name) == 0) {
            value = variable[i].value;
            ++*times;
        }
    return value;
}

static int isPassed(const char *name, const char *value)
{
    unsigned times;
    const char *found = passed(name, &times);

    testDiag("%s is %s", name, found ? found : "not passed");
    return value ? times == 1 && strcmp(found, value) == 0 : !times;
}

static void testVariables(void)
{
    static const char *const names[] = { "LOCATION", "ENGINEER", "HOSTNAME", "NOBODY_HAS_SET_THIS", NULL };
    const ebpfMonInventorySink sink = { .variable = keepVariable };
    char host[200] = "";

    testDiag("variables");
    gethostname(host, sizeof(host) - 1);
    unsetenv("HOSTNAME");
    unsetenv("IOCNAME");
    epicsEnvSet("LOCATION", "Hall 3"); /* while it runs, as st.cmd does */
    epicsEnvSet("ENGINEER", "");
    epicsEnvSet("SECTOR", "7");
    ebpfMonInventoryReadVariables(&ioc, names, " SECTOR  NOBODY_HAS_SET_THIS", &sink);
    testOk1(isPassed("LOCATION", "Hall 3"));
    testOk(isPassed("ENGINEER", NULL) && isPassed("NOBODY_HAS_SET_THIS", NULL),
           "an empty variable, and one that is not there, are not passed");
    testOk(isPassed("SECTOR", "7"), "a name of the operator's list");
    testOk(isPassed("IOCNAME", "iocTest"), "the IOC does not set its name: that of the monitor");
    testOk(isPassed("HOSTNAME", host), "… and so the host");
    testOk(isPassed("EPICS_VERSION", "EPICS " EPICS_VERSION_SHORT), "the release");
    testOk(isPassed("RSRV_SERVER_PORT", NULL), "no port: it does not listen");
    variables = 0;
    epicsEnvSet("IOCNAME", "vacuum");
    epicsEnvSet("HOSTNAME", "console");
    ebpfMonInventoryReadVariables(&ioc, names, "IOCNAME", &sink);
    testOk(isPassed("IOCNAME", "vacuum") && isPassed("HOSTNAME", "console") && isPassed("SECTOR", NULL),
           "what the IOC sets comes first, and only once");
}

MAIN(testInventory)
{
    char why[200] = "";
    ebpfMonMem *mem;

    testPlan(17);
    testdbPrepare();
    testdbReadDatabase("testInventory.dbd", NULL, NULL);
    testInventory_registerRecordDeviceDriver(pdbbase);
    testdbReadDatabase("testInventory.db", "..", NULL);
    setLongLink();
    testIocInitOk();
    ioc.pid = getpid();
    ioc.pdbbase = (uint64_t)(uintptr_t)&pdbbase;
    mem = ebpfMonMemNew(ioc.pid);
    ioc.cat = ebpfMonCatalogueRead(mem, ioc.pdbbase, why, sizeof(why));
    if (!ioc.cat)
        testAbort("no catalogue: %s", why);
    testRecords();
    testLongLink();
    testEndless();
    testVariables();
    ebpfMonCatalogueRelease(ioc.cat);
    ebpfMonMemFree(mem);
    testIocShutdownOk();
    testdbCleanup();
    return testDone();
}
