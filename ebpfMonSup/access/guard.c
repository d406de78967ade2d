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

/* A guarded record. Its probe is a client of access security without names. It is the first client of the record. So
 * whenever access security reads its file, it computes the rights of the probe before those of all other clients. */
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
    int              isBuiltIn;   /* there is no file, so we began access security */
    size_t           builtInRead; /* bytes of our text that asInitialize has read; it passes no context */
    const char      *whyClosed; /* why some records are closed; NULL: none is */
} guard;

int ebpfMonGuardHasPv(const char *name)
{
    DBADDR addr;

    return !dbNameToAddr(name, &addr) && ebpfMonJudgeHasGroup(addr.precord->asg);
}

static void closeRecord(guardedRecord *g, const char *why)
{
    if (guard.whyClosed != why)
        errlogSevPrintf(errlogMajor, "ebpfMon: clients cannot write to the monitor's PVs: %s\n", why);
    guard.whyClosed = why;
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

/* Gives asInitialize our text in place of a file. Everybody may write to records that are not guarded, as without
 * access security. */
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

/* Begins access security with our text. asInit does this only for a file, so this function does what asInitCommon and
 * asDbAddRecords (asDbLib.c) do. */
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

/* Access security calls this under its lock whenever it has computed the rights of the probe. So the call comes each
 * time after its file was read, and before it computes the rights of any other client of this record. */
static void onProbe(ASCLIENTPVT probe, asClientStatus status)
{
    const ASGMEMBER *member = probe->pasgMember;
    guardedRecord *g = probe->userPvt;

    (void)status;
    probe->access = (asAccessRights)-1; /* asLib calls us only if the rights change; these differ from all real ones */
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
    guard.whyClosed = NULL;
    openRecord(g);
}

static void addRecord(dbCommon *record)
{
    guardedRecord *g = calloc(1, sizeof(*g));

    if (!g) {
        errlogSevPrintf(errlogFatal, "ebpfMon: out of memory: clients cannot write to %s. Free memory on this host, "
                        "then restart the monitor\n", record->name);
        record->disp = TRUE;
        return;
    }
    g->record = record;
    g->next = guard.records;
    guard.records = g;
    guard.count++;
    if (!asActive) {
        closeRecord(g, "access security did not begin: add asSetFilename with the path of ebpfMon.acf to st.cmd before "
                    "iocInit, then restart the monitor");
    } else if (!ebpfMonAddClientIsInForce()) {
        closeRecord(g, "servers do not call the asAddClient of ebpfMon: link this IOC with shared libraries, and "
                    "ebpfMon before EPICS Base");
    } else if (ebpfMonAddClientNobody(&g->probe, record->asp)) {
        closeRecord(g, "asAddClient of EPICS Base failed: restart the monitor; if this remains, please report it");
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
    if (pasbase) /* the process ends: iocShutdown of Base leaves the database and the servers as they are */
        return;
    while (guard.records) {
        guardedRecord *next = guard.records->next;

        free(guard.records);
        guard.records = next;
    }
    guard.count = 0;
    guard.whyClosed = NULL;
    guard.isStarted = 0;
    ebpfMonJudgeFix(0);
    if (guard.isBuiltIn)
        asActive = FALSE; /* asShutdown does not reset it; then the next database would have no members */
    guard.isBuiltIn = 0;
}

void ebpfMonGuardReport(int level)
{
    char text[1024];

    ebpfMonOperatorsFormat(ebpfMonJudgeGetOperators(), text, sizeof(text));
    printf("operators: %s\n", text);
    if (guard.whyClosed)
        printf("closed for all clients: %s\n", guard.whyClosed);
    if (level > 0)
        printf("guarded records: %u\n", guard.count);
}
