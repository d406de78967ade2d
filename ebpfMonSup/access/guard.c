/* SPDX-License-Identifier: BSD-3-Clause */
#define USE_TYPED_RSET /* chooses the type-safe tables of Base; it must stand before its headers */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <asDbLib.h>
#include <asLib.h>
#include <dbAccess.h>
#include <dbStaticLib.h>
#include <epicsStdio.h>
#include <errlog.h>

#include "access/addClient.h"
#include "access/guard.h"
#include "access/guardedPuts.h"

/* A guarded record. Its probe is a client of access security that stands for nobody: the first client of the record, so
 * that access security computes it before all others whenever it reads its file. */
typedef struct guardedRecord {
    struct guardedRecord *next;
    dbCommon   *record;
    ASCLIENTPVT probe;
    int         isClosed; /* we have set DISP */
} guardedRecord;

/* One per process: see guard.h. */
static struct {
    int              isStarted;
    guardedRecord   *records;  /* fixed by ebpfMonGuardStart */
    unsigned         count;
    int              isBuiltIn;   /* access security was begun by us, without a file */
    size_t           builtInRead; /* bytes of that text; asInitialize has no context to hand over */
    const char      *closed;   /* why the records are closed that are closed; NULL: none is */
} guard;

int ebpfMonGuardHasPv(const char *name)
{
    DBADDR addr;

    return !dbNameToAddr(name, &addr) && ebpfMonJudgeHasGroup(addr.precord->asg);
}

static void closeRecord(guardedRecord *g, const char *why)
{
    if (guard.closed != why)
        errlogSevPrintf(errlogMajor, "ebpfMon: clients cannot write to the monitor's PVs: %s\n", why);
    guard.closed = why;
    if (!g->record->disp)
        g->isClosed = 1;
    g->record->disp = TRUE;
}

static void openRecord(guardedRecord *g)
{
    if (g->isClosed)
        g->record->disp = FALSE;
    g->isClosed = 0;
}

/* In place of a file: what is not guarded may be written by all, as it is without access security. */
static int readBuiltIn(char *buf, int size)
{
    static const char text[] = "ASG(DEFAULT) { RULE(1, WRITE) }\n"
                               "ASG(" EBPFMON_ASG_RO ") { RULE(1, READ, TRAPWRITE) }\n"
                               "ASG(" EBPFMON_ASG ") { RULE(1, READ, TRAPWRITE) RULE(0, WRITE, TRAPWRITE) }\n";
    size_t n = sizeof(text) - 1 - guard.builtInRead;

    if (n > (size_t)size)
        n = (size_t)size;
    memcpy(buf, text + guard.builtInRead, n);
    guard.builtInRead += n;
    return (int)n;
}

static void changeGroup(dbCommon *record)
{
    asChangeGroup(&record->asp, record->asg);
}

/* Does what asInit does with a file (asInitCommon, asDbAddRecords in asDbLib.c), which it does not do later. */
static void beginAccessSecurity(void)
{
    DBENTRY entry;

    guard.builtInRead = 0;
    if (asInitialize(readBuiltIn))
        return;
    guard.isBuiltIn = 1;
    dbSpcAsRegisterCallback(changeGroup);
    dbInitEntry(pdbbase, &entry);
    for (long type = dbFirstRecordType(&entry); !type; type = dbNextRecordType(&entry))
        for (long status = dbFirstRecord(&entry); !status; status = dbNextRecord(&entry)) {
            dbCommon *record = entry.precnode->precord;

            if (!record->asp && !asAddMember(&record->asp, record->asg))
                asPutMemberPvt(record->asp, record);
        }
    dbFinishEntry(&entry);
}

/* Called by access security, with its lock, whenever it has computed the probe's rights: so at once when its file was
 * read (again), and before the rights of any other client of this record. */
static void onProbe(ASCLIENTPVT probe, asClientStatus status)
{
    const ASGMEMBER *member = probe->pasgMember;
    guardedRecord *g = probe->userPvt;

    (void)status;
    probe->access = (asAccessRights)-1; /* other rights than any: so it is called the next time, too */
    if (!ebpfMonJudgeHasGroup(member->pasg->name)) {
        closeRecord(g, "the access security file has no group EBPFMON or EBPFMON_RO: copy both from the file "
                    "ebpfMon.acf of the monitor, then call asInit");
        return;
    }
    for (ASGRULE *rule = (ASGRULE *)ellFirst(&member->pasg->ruleList); rule; rule = (ASGRULE *)ellNext(&rule->node)) {
        if (rule->access == asWRITE)
            rule->level = 0;
        rule->trapMask = AS_TRAP_WRITE;
    }
    guard.closed = NULL;
    openRecord(g);
}

static void addRecord(dbCommon *record)
{
    guardedRecord *g = calloc(1, sizeof(*g));

    if (!g) {
        errlogSevPrintf(errlogFatal, "ebpfMon: out of memory, %s is closed for clients\n", record->name);
        record->disp = TRUE;
        return;
    }
    g->record = record;
    g->next = guard.records;
    guard.records = g;
    guard.count++;
    if (!asActive) {
        closeRecord(g, "access security could not begin; name the file ebpfMon.acf by asSetFilename before iocInit");
    } else if (!ebpfMonAddClientIsInForce()) {
        closeRecord(g, "another asAddClient than ours is in force: link this IOC with shared libraries, and ebpfMon "
                    "before EPICS Base");
    } else if (ebpfMonAddClientNobody(&g->probe, record->asp)) {
        closeRecord(g, "access security gave us no client; this should not happen");
    } else {
        asPutClientPvt(g->probe, g);
        asRegisterClientCallback(g->probe, onProbe);
    }
}

void ebpfMonGuardInit(void)
{
    ebpfMonJudgeInit();
    ebpfMonGuardedPutsInit();
}

void ebpfMonGuardStart(void)
{
    DBENTRY entry;

    if (guard.isStarted)
        return;
    guard.isStarted = 1;
    ebpfMonJudgeFix(1);
    if (!asActive)
        beginAccessSecurity();
    dbInitEntry(pdbbase, &entry);
    for (long type = dbFirstRecordType(&entry); !type; type = dbNextRecordType(&entry))
        for (long status = dbFirstRecord(&entry); !status; status = dbNextRecord(&entry)) {
            dbCommon *record = entry.precnode->precord;

            if (!dbIsAlias(&entry) && ebpfMonJudgeHasGroup(record->asg))
                addRecord(record);
        }
    dbFinishEntry(&entry);
}

void ebpfMonGuardStop(void)
{
    if (pasbase) /* a process that ends: Base leaves the database and the servers as they are (iocShutdown) */
        return;
    while (guard.records) {
        guardedRecord *next = guard.records->next;

        free(guard.records);
        guard.records = next;
    }
    guard.count = 0;
    guard.closed = NULL;
    guard.isStarted = 0;
    ebpfMonJudgeFix(0);
    if (guard.isBuiltIn)
        asActive = FALSE; /* asShutdown leaves it, and the next database would have no members */
    guard.isBuiltIn = 0;
}

void ebpfMonGuardReport(int level)
{
    char text[1024];

    ebpfMonOperatorsFormat(ebpfMonJudgeGetOperators(), text, sizeof(text));
    printf("operators: %s\n", text);
    if (guard.closed)
        printf("closed for all clients: %s\n", guard.closed);
    if (level > 0)
        printf("guarded records: %u\n", guard.count);
}
