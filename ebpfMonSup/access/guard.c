/* SPDX-License-Identifier: BSD-3-Clause */
#define USE_TYPED_RSET /* chooses the type-safe tables of Base; it must stand before its headers */
#include <arpa/inet.h>
#include <asDbLib.h>
#include <asLib.h>
#include <asTrapWrite.h>
#include <dbAccess.h>
#include <dbBase.h>
#include <dbChannel.h>
#include <dbStaticLib.h>
#include <dlfcn.h>
#include <ellLib.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <errlog.h>
#include <recSup.h>
#include <special.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "access/client.h"
#include "access/guard.h"
#include "access/operators.h"
#include "common/clock.h"
#include "common/text.h"

/* --- asAddClient --- */

/*
 * Replaces asAddClient of Base by a function of ours. Every server calls asAddClient in the thread of the connection
 * when a client makes a channel. Access security has no hook at this place, and it compares only names that the client
 * claims.
 *
 * The replacement works because the dynamic linker searches shared libraries in the order in which they are linked,
 * ours before Base's libCom (asLibRoutines.c). Our function calls Base's function each time. If the record is guarded
 * and the client may not write, it passes empty names and level 1, for which no rule of the guarded groups grants WRITE
 * (below). For a CA client it passes the call unchanged: puts of CA clients are judged when they come. A client of any
 * other server than rsrv and pvAccessCPP may not write.
 */

typedef long (*addClientFunction)(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

static addClientFunction baseAddClient; /* set once. One per process, as the function itself */
static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

static void findBase(void *arg)
{
    (void)arg;
    baseAddClient = (addClientFunction)dlsym(RTLD_NEXT, "asAddClient");
}

/* Makes a client of access security without names: no rule of the guarded groups grants it WRITE. Returns what
 * asAddClient returns: 0, or an error of asLib.h. Any thread. */
static long addClientNobody(ASCLIENTPVT *client, ASMEMBERPVT member)
{
    static char noHost[1]; /* not a literal: asAddClient writes the host in small letters, into this memory */

    epicsThreadOnce(&once, findBase, NULL);
    return baseAddClient ? baseAddClient(client, member, 1, "", noHost) : S_asLib_noAccess;
}

/* Our asAddClient has a second name, so isAddClientInForce can compare it with the one that servers call. */
long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host);

long ebpfMonAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
{
    const ebpfMonAccessClient *here;
    const char *why;

    epicsThreadOnce(&once, findBase, NULL);
    if (!baseAddClient)
        return S_asLib_noAccess;
    if (!asActive || !member || !ebpfMonJudgeHasGroup(member->asgName))
        return baseAddClient(client, member, level, user, host);
    here = ebpfMonAccessClientHere();
    if (here && (here->server == ebpfMonClientCa || ebpfMonJudgeAllows(here, &why)))
        return baseAddClient(client, member, level, user, host);
    return addClientNobody(client, member);
}

/* Weak, because a program with static libraries can have only one asAddClient, and then Base's must be it. */
long epicsStdCall asAddClient(ASCLIENTPVT *client, ASMEMBERPVT member, int level, const char *user, char *host)
    __attribute__((weak, alias("ebpfMonAddClient")));

/* Nonzero: servers call our function. 0: they call Base's, because the program is linked with static libraries. Any
 * thread. */
static int isAddClientInForce(void)
{
    epicsThreadOnce(&once, findBase, NULL);
    return baseAddClient && dlsym(RTLD_DEFAULT, "asAddClient") == (void *)ebpfMonAddClient;
}

/* --- puts --- */

/* The types that asTrapWrite passes (db_access.h). That header cannot be included beside dbAccess.h. */
enum { caString, caShort, caFloat, caEnum, caChar, caLong, caDouble, caPutAckt = 35, caPutAcks = 36 };

#define NOTES 256 /* notes that may wait for the event thread */
#define MESSAGE_NS 1000000000u /* least time between two messages about refused puts; the put log has all of them */

typedef struct {
    ELLNODE node;
    ebpfMonGuardedPut put;
} putNote;

/* The field description for read-only channels, with the record type and record support that Base finds through it
 * (dbGetRset). It is made once for each field and never freed, because channels point to it. */
typedef struct readOnlyField {
    struct readOnlyField *next;
    const dbFldDes *original;
    dbFldDes        copy;
    dbRecordType    type;
    rset            support;
} readOnlyField;

/* One per process: asTrapWrite calls its listeners without a context. */
static struct {
    epicsMutexId   lock;      /* guards all but readOnly */
    putNote        note[NOTES];
    ELLLIST        unused, complete;
    unsigned       lost;
    void         (*noted)(void *arg); /* called for each complete note; may be NULL */
    void          *notedArg;
    uint64_t       messageAt; /* when the last message about a refused put was printed (monotonic ns); 0: never */
    unsigned       unprinted; /* refused puts since then */
    readOnlyField *readOnly;  /* guarded by the lock of asTrapWrite */
} guarded;

static putNote *getNote(void)
{
    putNote *note;

    epicsMutexMustLock(guarded.lock);
    note = (putNote *)ellGet(&guarded.unused);
    guarded.lost += !note;
    epicsMutexUnlock(guarded.lock);
    return note;
}

/* The shortest text that reads back as the same number. */
static void formatNumber(double number, char *buf, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, size, "%.*g", digits, number);
        if (strtod(buf, NULL) == number)
            return;
    }
}

/* Reads the field as text; a long one is cut. Takes the record's lock. 0, or -1: the field cannot be read. */
static int readField(dbChannel *channel, char *buf, size_t size)
{
    char text[512] = "";
    double number;
    long count = 1;

    if (dbChannelFinalElements(channel) == 1 &&
        (dbChannelFieldType(channel) == DBF_DOUBLE || dbChannelFieldType(channel) == DBF_FLOAT)) {
        if (dbChannelGetField(channel, DBR_DOUBLE, &number, NULL, &count, NULL))
            return -1;
        formatNumber(number, text, sizeof(text)); /* not as DBR_STRING, which has PREC digits only */
    } else if (dbChannelFinalElements(channel) > 1 &&
        (dbChannelFieldType(channel) == DBF_CHAR || dbChannelFieldType(channel) == DBF_UCHAR)) {
        count = (long)sizeof(text) - 1;
        if (dbChannelGetField(channel, DBR_CHAR, text, NULL, &count, NULL))
            return -1;
        text[count > 0 && count < (long)sizeof(text) ? count : 0] = 0;
    } else if (dbChannelGetField(channel, DBR_STRING, text, NULL, &count, NULL)) {
        return -1;
    }
    ebpfMonTextCopy(buf, size, text);
    return 0;
}

static void setNames(const dbChannel *channel, ebpfMonGuardedPut *put)
{
    const dbFldDes *field = dbChannelFldDes(channel);

    if (strcmp(field->name, "VAL") == 0)
        snprintf(put->pv, sizeof(put->pv), "%s", dbChannelRecord(channel)->name);
    else
        snprintf(put->pv, sizeof(put->pv), "%s.%s", dbChannelRecord(channel)->name, field->name);
    snprintf(put->channel, sizeof(put->channel), "%s", dbChannelName(channel));
}

static void setValue(const asTrapWriteMessage *message, ebpfMonGuardedPut *put)
{
    static const size_t sizes[] = {MAX_STRING_SIZE, 2, 4, 2, 1, 4, 8}; /* of one element */
    size_t size;

    put->type = -1;
    put->count = message->no_elements;
    if (!message->data || message->dbrType < 0 || message->dbrType > caDouble || message->no_elements < 1)
        return;
    size = sizes[message->dbrType] * (size_t)message->no_elements;
    put->type = message->dbrType;
    put->have = (uint32_t)(size < sizeof(put->data) ? size : sizeof(put->data));
    memcpy(put->data, message->data, put->have);
}

/* The special() of read-only channels: dbPut calls it before and after it writes. */
static long refusePut(struct dbAddr *addr, int after)
{
    (void)addr;
    return after ? 0 : S_db_noMod;
}

/* Finds or makes the read-only description of a field. NULL without memory. */
static dbFldDes *getReadOnlyField(const dbFldDes *original)
{
    readOnlyField *field = guarded.readOnly;

    while (field && field->original != original && &field->copy != original)
        field = field->next;
    if (!field) {
        field = calloc(1, sizeof(*field));
        if (!field)
            return NULL;
        field->original = original;
        field->support = *original->pdbRecordType->prset;
        field->support.special = refusePut;
        field->type = *original->pdbRecordType;
        field->type.prset = &field->support;
        field->copy = *original;
        field->copy.process_passive = 0;
        field->copy.pdbRecordType = &field->type;
        field->next = guarded.readOnly;
        guarded.readOnly = field;
    }
    return &field->copy;
}

/* A client acknowledges an alarm by a put of a special type, which dbPut handles before it calls special() (putAckt,
 * putAcks in dbAccess.c). So the sent value is replaced by a value that changes nothing. */
static void refuseAcknowledge(const dbCommon *record, int type, void *data)
{
    epicsUInt16 same = type == caPutAckt ? record->ackt : 0;

    memcpy(data, &same, sizeof(same));
}

static void refuseCa(dbChannel *channel, const asTrapWriteMessage *message)
{
    dbFldDes *field = getReadOnlyField(dbChannelFldDes(channel));

    channel->addr.special = SPC_MOD;
    if (field)
        channel->addr.pfldDes = field;
    else
        dbChannelRecord(channel)->disp = TRUE; /* no memory: refuse the puts of all clients */
    if (message->data && (message->dbrType == caPutAckt || message->dbrType == caPutAcks))
        refuseAcknowledge(dbChannelRecord(channel), message->dbrType, message->data);
}

static void printRefused(const ebpfMonGuardedPut *put)
{
    const ebpfMonPeerUser *user = &put->client.user;
    uint64_t now = ebpfMonClockMonotonic();
    char addr[INET_ADDRSTRLEN] = "", who[32] = "";
    unsigned more;
    int isTime;

    epicsMutexMustLock(guarded.lock);
    isTime = !guarded.messageAt || now - guarded.messageAt >= MESSAGE_NS;
    more = guarded.unprinted;
    guarded.unprinted = isTime ? 0 : more + 1;
    if (isTime)
        guarded.messageAt = now;
    epicsMutexUnlock(guarded.lock);
    if (!isTime)
        return;
    inet_ntop(AF_INET, &user->peer.sin_addr, addr, sizeof(addr));
    if (user->kind == ebpfMonPeerLocal)
        snprintf(who, sizeof(who), "uid %u", (unsigned)user->uid);
    errlogSevPrintf(errlogMinor, "ebpfMon: refused a put to %s by %s%s%s:%u, who claims to be '%s': %s%s\n", put->pv,
                    who, who[0] ? " at " : "", addr, ntohs(user->peer.sin_port), put->user, put->why,
                    more ? " (more were refused before this one: see PUTS and the logs)" : "");
}

static void judgePut(asTrapWriteMessage *message, dbChannel *channel, const ebpfMonAccessClient *client)
{
    putNote *note = getNote();
    ebpfMonGuardedPut forNobody = { 0 }, *put = note ? &note->put : &forNobody;
    const char *why = "";

    if (note)
        memset(put, 0, sizeof(*put));
    epicsTimeGetCurrent(&put->time);
    put->at = ebpfMonClockMonotonic();
    put->client = *client;
    ebpfMonTextCopy(put->user, sizeof(put->user), message->userid ? message->userid : "");
    ebpfMonTextCopy(put->host, sizeof(put->host), message->hostid ? message->hostid : "");
    setNames(channel, put);
    setValue(message, put);
    put->hasOld = !readField(channel, put->old, sizeof(put->old));
    put->isAllowed = ebpfMonJudgeAllows(client, &why);
    if (put->isAllowed && strcmp(dbChannelRecord(channel)->asg, EBPFMON_ASG_RO) == 0) {
        put->isAllowed = 0; /* access security has refused the put; for PVA asTrapWrite is called nevertheless */
        why = "nobody may write to this PV";
    }
    snprintf(put->why, sizeof(put->why), "%s", put->isAllowed ? "" : why);
    if (!put->isAllowed) {
        if (client->server == ebpfMonClientCa)
            refuseCa(channel, message);
        printRefused(put);
    }
    message->userPvt = note;
}

static void completeNote(asTrapWriteMessage *message, dbChannel *channel)
{
    putNote *note = message->userPvt;

    if (!note)
        return;
    if (note->put.isAllowed)
        note->put.hasAfter = !readField(channel, note->put.after, sizeof(note->put.after));
    epicsMutexMustLock(guarded.lock);
    ellAdd(&guarded.complete, &note->node);
    if (guarded.noted)
        guarded.noted(guarded.notedArg);
    epicsMutexUnlock(guarded.lock);
}

/* asTrapWrite calls this in the servers' threads, under its lock. After a write-notify the second call (after = 1)
 * comes in another thread. "serverSpecific" depends on the server; both servers that we know pass a dbChannel. */
static void onTrappedWrite(asTrapWriteMessage *message, int after)
{
    dbChannel *channel = message->serverSpecific;
    const ebpfMonAccessClient *client;

    if (after) {
        if (message->userPvt)
            completeNote(message, channel);
        return;
    }
    client = ebpfMonAccessClientHere();
    if (client && ebpfMonJudgeHasGroup(dbChannelRecord(channel)->asg))
        judgePut(message, channel, client);
}

/* Registers the listener of asTrapWrite. Call this once, before a server starts. */
static void initGuardedPuts(void)
{
    guarded.lock = epicsMutexMustCreate();
    for (unsigned i = 0; i < NOTES; i++)
        ellAdd(&guarded.unused, &guarded.note[i].node);
    asTrapWriteRegisterListener(onTrappedWrite);
}

void ebpfMonGuardedPutsSetSink(void (*noted)(void *arg), void *arg)
{
    if (!guarded.lock)
        return;
    epicsMutexMustLock(guarded.lock);
    guarded.noted = noted;
    guarded.notedArg = arg;
    epicsMutexUnlock(guarded.lock);
}

int ebpfMonGuardedPutsTake(ebpfMonGuardedPut *put)
{
    putNote *note;

    if (!guarded.lock)
        return 0;
    epicsMutexMustLock(guarded.lock);
    note = (putNote *)ellGet(&guarded.complete);
    if (note) {
        *put = note->put;
        ellAdd(&guarded.unused, &note->node);
    }
    epicsMutexUnlock(guarded.lock);
    return note != NULL;
}

unsigned ebpfMonGuardedPutsTakeLost(void)
{
    unsigned lost;

    if (!guarded.lock)
        return 0;
    epicsMutexMustLock(guarded.lock);
    lost = guarded.lost;
    guarded.lost = 0;
    epicsMutexUnlock(guarded.lock);
    return lost;
}

/* --- the guard --- */

/* A guarded record. Its probe is a client of access security without names. It is the first client of the record. So
 * whenever access security reads its file, it computes the rights of the probe before those of all other clients. */
typedef struct guardedRecord {
    struct guardedRecord *next;
    dbCommon   *record;
    ASCLIENTPVT probe;
    int         isClosed; /* we have set DISP */
} guardedRecord;

/* One per process, because Base calls the guard without a context. */
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
    } else if (!isAddClientInForce()) {
        closeRecord(g, "servers do not call the asAddClient of ebpfMon: link this IOC with shared libraries, and "
                    "ebpfMon before EPICS Base");
    } else if (addClientNobody(&g->probe, record->asp)) {
        closeRecord(g, "asAddClient of EPICS Base failed: restart the monitor; if this remains, please report it");
    } else {
        asPutClientPvt(g->probe, g);
        asRegisterClientCallback(g->probe, onProbe);
    }
}

void ebpfMonGuardInit(void)
{
    ebpfMonJudgeInit();
    initGuardedPuts();
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
