/* SPDX-License-Identifier: BSD-3-Clause */
#define USE_TYPED_RSET /* chooses the type-safe tables of Base; it must stand before its headers */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <asTrapWrite.h>
#include <dbAccess.h>
#include <dbBase.h>
#include <dbChannel.h>
#include <ellLib.h>
#include <epicsMutex.h>
#include <errlog.h>
#include <recSup.h>
#include <special.h>

#include "access/judge.h"
#include "access/guardedPuts.h"
#include "common/clock.h"
#include "common/text.h"

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

void ebpfMonGuardedPutsInit(void)
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
