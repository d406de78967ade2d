/* SPDX-License-Identifier: BSD-3-Clause */
#define USE_TYPED_RSET /* chooses the type-safe tables of Base; it must stand before its headers */
#include <asDbLib.h>
#include <asLib.h>
#include <asTrapWrite.h>
#include <dbAccess.h>
#include <dbBase.h>
#include <dbChannel.h>
#include <dbEvent.h>
#include <dbNotify.h>
#include <dbStaticLib.h>
#include <ellLib.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <errlog.h>
#include <recGbl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "access/client.h"
#include "access/guard.h"
#include "access/operators.h"
#include "common/clock.h"
#include "common/text.h"
#include "host/tcpSockets.h"

/* The types that asTrapWrite passes (db_access.h). That header cannot be included beside dbAccess.h. */
enum { caString, caShort, caFloat, caEnum, caChar, caLong, caDouble, caPutAckt = 35, caPutAcks = 36 };

#define NOTES 256 /* notes that are open, or wait for the event thread */
#define MESSAGE_NS 1000000000u /* least time between two messages about refused puts; the put log has all of them */

/* A record whose value controls the monitor. The lock of the record guards it. */
typedef struct control {
    struct control *next;
    dbCommon       *record;
    DBADDR          value;       /* VAL; of a long string VAL$ */
    void           *kept, *now;  /* the value that was accepted last; room for the one in the record */
    long            keptCount;
} control;

/* One in each group: a client of access security that nobody is, to look at the rules in force. */
typedef struct {
    const char *group;
    int         mayWrite; /* nonzero: values may be written in this group */
    ASCLIENTPVT client;
    const char *fault;    /* what is wrong with the rules; NULL: nothing. Set under the lock of access security */
} rulesProbe;

typedef struct {
    ELLNODE node;
    const dbCommon *record;
    epicsThreadId   thread;    /* that makes the put */
    epicsEnum16     ackt, acks;
    int             isApplied;
    ebpfMonGuardedPut put;
} putNote;

/* One per process, because Base calls the guard without a context. */
static struct {
    int          isStarted;
    control     *controls;    /* fixed when iocInit has initialised the records */
    rulesProbe   probe[2];
    int          isBuiltIn;   /* there is no file, so we began access security */
    epicsMutexId lock;        /* guards what follows */
    putNote      note[NOTES];
    ELLLIST      unused, open, complete;
    unsigned     lost;
    void       (*noted)(void *arg); /* called for each complete note; may be NULL */
    void        *notedArg;
    uint64_t     messageAt;   /* when the last message about a refused put was printed (monotonic ns); 0: never */
    unsigned     unprinted;   /* refused puts since then */
} guard = { .probe = {{ .group = EBPFMON_ASG, .mayWrite = 1 }, { .group = EBPFMON_ASG_RO }} };

/* The record to which a server that we do not know writes in this thread. In each thread, because it has no context. */
static _Thread_local const dbCommon *unknownServerWrites;

/* --- rules --- */

static const char *findFault(const rulesProbe *p)
{
    const ASG *group = p->client->pasgMember->pasg;

    if (strcmp(group->name, p->group) != 0)
        return "the access security file has no group EBPFMON or EBPFMON_RO: copy both from the file ebpfMon.acf of "
               "the monitor, then call asInit";
    for (ASGRULE *rule = (ASGRULE *)ellFirst(&group->ruleList); rule; rule = (ASGRULE *)ellNext(&rule->node))
        if (rule->access == asWRITE && (rule->level > 0 || !p->mayWrite || !rule->trapMask))
            return "the access security file grants too much: in EBPFMON a rule may grant WRITE at level 0 with "
                   "TRAPWRITE, in EBPFMON_RO no WRITE. Correct it, then call asInit";
    return NULL;
}

/* Access security calls this under its lock, in the thread that calls asInit, when the file is read. A thread that
 * makes a put must not request this lock: its owner waits for clients (casAccessRightsCB), and clients wait for
 * records. */
static void lookAtRules(ASCLIENTPVT client, asClientStatus status)
{
    rulesProbe *p = asGetClientPvt(client);
    const char *fault = findFault(p);

    client->access = (asAccessRights)-1; /* it calls us only if the rights change; these differ from all real ones */
    if (fault && fault != p->fault)
        errlogSevPrintf(errlogMajor, "ebpfMon: clients cannot write to the monitor's PVs: %s\n", fault);
    p->fault = fault;
}

/* What is wrong with the rules that are in force now. NULL: nothing. */
static const char *getFault(void)
{
    if (guard.isStarted && !asActive)
        return "access security did not begin: add asSetFilename with the path of ebpfMon.acf to st.cmd before "
               "iocInit, then restart the monitor";
    return guard.probe[0].fault ? guard.probe[0].fault : guard.probe[1].fault;
}

/* --- records --- */

static control *findControl(const dbCommon *prec)
{
    control *c = guard.controls;

    while (c && c->record != prec)
        c = c->next;
    return c;
}

static long readValue(control *c, void *to)
{
    long count = c->value.no_elements;

    memset(to, 0, (size_t)c->value.no_elements * (size_t)c->value.field_size);
    if (dbGet(&c->value, c->value.dbr_field_type, to, NULL, &count, NULL))
        count = 0;
    return count ? count : 1; /* an empty long string is one 0 */
}

static void keepValue(control *c)
{
    c->keptCount = readValue(c, c->kept);
}

/* Nonzero: the record had another value than the one that was accepted. */
static int setBack(control *c)
{
    size_t size = (size_t)c->value.no_elements * (size_t)c->value.field_size;

    readValue(c, c->now);
    if (memcmp(c->now, c->kept, size) == 0)
        return 0;
    dbPut(&c->value, c->value.dbr_field_type, c->kept, c->keptCount);
    return 1;
}

long ebpfMonGuardAdd(dbCommon *prec)
{
    control *c = calloc(1, sizeof(*c));
    char name[PVNAME_STRINGSZ + sizeof(".VAL$")];
    size_t size;
    long status;

    if (!c)
        return S_db_noMemory;
    snprintf(name, sizeof(name), "%s.VAL$", prec->name);
    if (dbNameToAddr(name, &c->value)) { /* it is no text */
        *strchr(name, '$') = 0;
        status = dbNameToAddr(name, &c->value);
        if (status) {
            free(c);
            return status;
        }
    }
    size = (size_t)c->value.no_elements * (size_t)c->value.field_size;
    c->kept = calloc(2, size);
    if (!c->kept) {
        free(c);
        return S_db_noMemory;
    }
    c->now = (char *)c->kept + size;
    c->record = prec;
    c->next = guard.controls;
    guard.controls = c;
    if (prec->tse == epicsTimeEventCurrentTime)
        prec->tse = epicsTimeEventDeviceTime; /* what is refused leaves no trace in TIME either */
    keepValue(c);
    return 0;
}

void ebpfMonGuardKeep(dbCommon *prec)
{
    control *c = findControl(prec);

    if (c)
        keepValue(c);
    if (prec->tse == epicsTimeEventDeviceTime)
        epicsTimeGetCurrent(&prec->time);
    else
        recGblGetTimeStamp(prec);
}

int ebpfMonGuardSetBack(dbCommon *prec)
{
    control *c = findControl(prec);

    return c && setBack(c);
}

/* The put that this thread makes is applied. */
static void applyNote(const dbCommon *prec)
{
    epicsThreadId self = epicsThreadGetIdSelf();
    putNote *note;

    epicsMutexMustLock(guard.lock);
    note = (putNote *)ellLast(&guard.open);
    while (note && !(note->record == prec && note->thread == self))
        note = (putNote *)ellPrevious(&note->node);
    if (note)
        note->isApplied = 1;
    epicsMutexUnlock(guard.lock);
}

/* Nonzero: the value that the record has now may be applied. A put-callback processes the record in the thread of its
 * client, too, because these records are never busy (dbNotify.c). In another thread nobody knows whose it is. */
static int judgeValue(const dbCommon *prec)
{
    const ebpfMonAccessClient *client = ebpfMonAccessClientHere();
    const char *why;

    if (getFault() || unknownServerWrites == prec)
        return 0;
    return client ? ebpfMonJudgeAllows(client, &why) : !prec->ppn;
}

int ebpfMonGuardAccepts(dbCommon *prec)
{
    control *c = findControl(prec);

    if (!c)
        return 0;
    if (judgeValue(prec)) {
        applyNote(prec);
        ebpfMonGuardKeep(prec);
        return 1;
    }
    setBack(c);
    if (prec->ppn)
        prec->ppn->status = notifyError; /* the client of the put-callback gets it */
    prec->nsta = prec->stat; /* the alarm stays */
    prec->nsev = prec->sevr;
    memcpy(prec->namsg, prec->amsg, sizeof(prec->namsg));
    return 0;
}

/* --- puts --- */

static putNote *getNote(void)
{
    putNote *note;

    epicsMutexMustLock(guard.lock);
    note = (putNote *)ellGet(&guard.unused);
    guard.lost += !note;
    epicsMutexUnlock(guard.lock);
    if (note) {
        memset(&note->put, 0, sizeof(note->put));
        note->isApplied = 0;
    }
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

static void printRefused(const ebpfMonGuardedPut *put)
{
    const ebpfMonPeerUser *user = &put->client.user;
    uint64_t now = ebpfMonClockMonotonic();
    char end[EBPFMON_PEERTEXT_SIZE + 8], who[32] = "";
    unsigned more;
    int isTime;

    epicsMutexMustLock(guard.lock);
    isTime = !guard.messageAt || now - guard.messageAt >= MESSAGE_NS;
    more = guard.unprinted;
    guard.unprinted = isTime ? 0 : more + 1;
    if (isTime)
        guard.messageAt = now;
    epicsMutexUnlock(guard.lock);
    if (!isTime)
        return;
    ebpfMonPeerTextEnd(user->connection.addr, user->connection.addr6, user->connection.port, end, sizeof(end));
    if (user->kind == ebpfMonPeerLocal)
        snprintf(who, sizeof(who), "uid %u", (unsigned)user->uid);
    errlogSevPrintf(errlogMinor, "ebpfMon: refused a put to %s by %s%s%s, who claims to be '%s': %s%s\n", put->pv, who,
                    who[0] ? " at " : "", end, put->user, put->why,
                    more ? " (more were refused before this one: see PUTS and the logs)" : "");
}

/* Why the client may not make this put. NULL: it may. */
static const char *findRefusal(const dbChannel *channel, const ebpfMonAccessClient *client)
{
    const char *why = "";

    if (!ebpfMonJudgeAllows(client, &why))
        return why;
    /* access security has refused these two; for PVA asTrapWrite is called nevertheless */
    if (strcmp(dbChannelRecord(channel)->asg, EBPFMON_ASG_RO) == 0)
        return "nobody may write to this PV";
    if (dbChannelFldDes(channel)->as_level > 0)
        return "nobody may write to this field";
    return getFault();
}

static void judgePut(asTrapWriteMessage *message, dbChannel *channel, const ebpfMonAccessClient *client)
{
    putNote *note = getNote();
    ebpfMonGuardedPut forNobody = { 0 }, *put = note ? &note->put : &forNobody;
    const char *why = findRefusal(channel, client);

    epicsTimeGetCurrent(&put->time);
    put->at = ebpfMonClockMonotonic();
    put->client = *client;
    ebpfMonTextCopy(put->user, sizeof(put->user), message->userid ? message->userid : "");
    ebpfMonTextCopy(put->host, sizeof(put->host), message->hostid ? message->hostid : "");
    setNames(channel, put);
    setValue(message, put);
    put->hasOld = !readField(channel, put->old, sizeof(put->old));
    put->isAllowed = !why;
    snprintf(put->why, sizeof(put->why), "%s", why ? why : "");
    if (why)
        printRefused(put);
    message->userPvt = note;
    if (!note)
        return;
    note->record = dbChannelRecord(channel);
    note->thread = epicsThreadGetIdSelf();
    note->ackt = note->record->ackt;
    note->acks = note->record->acks;
    epicsMutexMustLock(guard.lock);
    ellAdd(&guard.open, &note->node);
    epicsMutexUnlock(guard.lock);
}

/* A client acknowledges an alarm by a put of a special type: dbPut does it without processing (putAckt, putAcks). */
static void takeAcknowledgeBack(dbCommon *prec, const putNote *note)
{
    prec->ackt = note->ackt;
    if (prec->acks < note->acks)
        prec->acks = note->acks;
    db_post_events(prec, &prec->ackt, DBE_VALUE | DBE_ALARM);
    db_post_events(prec, &prec->acks, DBE_VALUE | DBE_ALARM);
    db_post_events(prec, NULL, DBE_ALARM);
}

/* A put without processing (process=false of PVA) leaves a value that nobody has judged. */
static void cleanUp(asTrapWriteMessage *message, dbCommon *prec, putNote *note)
{
    int isAcknowledge = message->dbrType == caPutAckt || message->dbrType == caPutAcks;

    dbScanLock(prec);
    ebpfMonGuardSetBack(prec);
    if (note && isAcknowledge && !note->put.isAllowed)
        takeAcknowledgeBack(prec, note);
    dbScanUnlock(prec);
    if (note && note->put.isAllowed && !note->isApplied && !isAcknowledge) {
        note->put.isAllowed = 0;
        snprintf(note->put.why, sizeof(note->put.why), "not applied: it did not process the record, try again");
    }
}

static void completeNote(putNote *note, dbChannel *channel)
{
    if (note->put.isAllowed)
        note->put.hasAfter = !readField(channel, note->put.after, sizeof(note->put.after));
    epicsMutexMustLock(guard.lock);
    ellDelete(&guard.open, &note->node);
    ellAdd(&guard.complete, &note->node);
    if (guard.noted)
        guard.noted(guard.notedArg);
    epicsMutexUnlock(guard.lock);
}

static void beginPut(asTrapWriteMessage *message, dbChannel *channel)
{
    static const ebpfMonAccessClient unknown = {
        .server = ebpfMonClientPva, .user = { .why = "neither the CA server of Base nor this QSRV made it" }
    };
    const ebpfMonAccessClient *client = ebpfMonAccessClientHere();

    unknownServerWrites = client ? NULL : dbChannelRecord(channel);
    judgePut(message, channel, client ? client : &unknown);
}

/* asTrapWrite calls this in the servers' threads, under its lock. After a write-notify the second call (after = 1)
 * comes in another thread. "serverSpecific" depends on the server; those of Base and QSRV pass a dbChannel. */
static void onTrappedWrite(asTrapWriteMessage *message, int after)
{
    dbChannel *channel = message->serverSpecific;

    if (!ebpfMonJudgeHasGroup(dbChannelRecord(channel)->asg))
        return;
    if (!after) {
        beginPut(message, channel);
        return;
    }
    unknownServerWrites = NULL;
    cleanUp(message, dbChannelRecord(channel), message->userPvt);
    if (message->userPvt)
        completeNote(message->userPvt, channel);
}

void ebpfMonGuardedPutsSetSink(void (*noted)(void *arg), void *arg)
{
    if (!guard.lock)
        return;
    epicsMutexMustLock(guard.lock);
    guard.noted = noted;
    guard.notedArg = arg;
    epicsMutexUnlock(guard.lock);
}

int ebpfMonGuardedPutsTake(ebpfMonGuardedPut *put)
{
    putNote *note;

    if (!guard.lock)
        return 0;
    epicsMutexMustLock(guard.lock);
    note = (putNote *)ellGet(&guard.complete);
    if (note) {
        *put = note->put;
        ellAdd(&guard.unused, &note->node);
    }
    epicsMutexUnlock(guard.lock);
    return note != NULL;
}

unsigned ebpfMonGuardedPutsTakeLost(void)
{
    unsigned lost;

    if (!guard.lock)
        return 0;
    epicsMutexMustLock(guard.lock);
    lost = guard.lost;
    guard.lost = 0;
    epicsMutexUnlock(guard.lock);
    return lost;
}

/* --- the guard --- */

int ebpfMonGuardHasPv(const char *name)
{
    DBADDR addr;

    return !dbNameToAddr(name, &addr) && ebpfMonJudgeHasGroup(addr.precord->asg);
}

static void changeGroup(dbCommon *record)
{
    asChangeGroup(&record->asp, record->asg);
}

/* Calls see(record) for each record of the database. */
static void forEachRecord(void (*see)(dbCommon *record))
{
    DBENTRY entry;

    dbInitEntry(pdbbase, &entry);
    for (long type = dbFirstRecordType(&entry); !type; type = dbNextRecordType(&entry))
        for (long status = dbFirstRecord(&entry); !status; status = dbNextRecord(&entry))
            if (!dbIsAlias(&entry))
                see(entry.precnode->precord);
    dbFinishEntry(&entry);
}

static void addMember(dbCommon *record)
{
    if (!record->asp && !asAddMember(&record->asp, record->asg))
        asPutMemberPvt(record->asp, record);
}

/* Begins access security without a file. Everybody may write to records that are not guarded, as without access
 * security. asInit does this only for a file, so this does what asInitCommon (asDbLib.c) does. */
static void beginAccessSecurity(void)
{
    if (asInitMem("ASG(DEFAULT) { RULE(1, WRITE) }\n"
                  "ASG(" EBPFMON_ASG_RO ") { RULE(1, READ, TRAPWRITE) }\n"
                  "ASG(" EBPFMON_ASG ") { RULE(1, READ, TRAPWRITE) RULE(0, WRITE, TRAPWRITE) }\n", NULL))
        return;
    guard.isBuiltIn = 1;
    dbSpcAsRegisterCallback(changeGroup);
    forEachRecord(addMember);
}

static void guardRecord(dbCommon *record)
{
    static char noHost[1]; /* not a literal: asAddClient writes the host in small letters, into this memory */
    control *c = findControl(record);

    if (c)
        keepValue(c); /* as autosave has restored it */
    else if (strcmp(record->asg, EBPFMON_ASG) == 0) {
        errlogSevPrintf(errlogMajor, "ebpfMon: clients cannot write to %s: it has no device support that judges them. "
                        "Give it another ASG\n", record->name);
        record->disp = TRUE;
    }
    for (int i = 0; i < 2; i++) {
        rulesProbe *p = &guard.probe[i];

        if (!p->client && record->asp && strcmp(record->asg, p->group) == 0 &&
            !asAddClient(&p->client, record->asp, 1, "", noHost)) {
            asPutClientPvt(p->client, p);
            asRegisterClientCallback(p->client, lookAtRules); /* which looks at once */
        }
    }
}

void ebpfMonGuardInit(void)
{
    ebpfMonJudgeInit();
    ebpfMonPeerUserInit();
    guard.lock = epicsMutexMustCreate();
    for (unsigned i = 0; i < NOTES; i++)
        ellAdd(&guard.unused, &guard.note[i].node);
    asTrapWriteRegisterListener(onTrappedWrite);
}

void ebpfMonGuardStart(void)
{
    if (guard.isStarted)
        return;
    guard.isStarted = 1;
    ebpfMonJudgeFix(1);
    if (!asActive)
        beginAccessSecurity();
    forEachRecord(guardRecord);
}

void ebpfMonGuardStop(void)
{
    if (pasbase) /* the process ends: iocShutdown of Base leaves the database and the servers as they are */
        return;
    while (guard.controls) {
        control *next = guard.controls->next;

        free(guard.controls->kept);
        free(guard.controls);
        guard.controls = next;
    }
    for (int i = 0; i < 2; i++) {
        guard.probe[i].client = NULL;
        guard.probe[i].fault = NULL;
    }
    guard.isStarted = 0;
    ebpfMonJudgeFix(0);
    if (guard.isBuiltIn)
        asActive = FALSE; /* asShutdown does not reset it; then the next database would have no members */
    guard.isBuiltIn = 0;
}

void ebpfMonGuardReport(int level)
{
    const char *fault = getFault();
    char text[1024];
    unsigned count = 0;

    ebpfMonOperatorsFormat(ebpfMonJudgeGetOperators(), text, sizeof(text));
    printf("operators: %s\n", text);
    if (fault)
        printf("closed for all clients: %s\n", fault);
    for (const control *c = guard.controls; c; c = c->next)
        count++;
    if (level > 0)
        printf("records that control the monitor: %u\n", count);
}
