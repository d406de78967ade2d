/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <caeventmask.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/procStat.h"
#include "usage/iocInventory.h"
#include "ioc/baseLayout.h"
#include "ioc/recordLinks.h"
#include "model/published.h"
#include "subscriptions/why.h"
#include "subscriptions/whyWrite.h"
#include "watch/target.h"

#define AGAIN_SECONDS 0.3  /* between the two readings of the record */
#define ASYNC_SECONDS 10.0 /* a device may need so long to answer */
#define LATE_PERIODS  3.0  /* a periodic record that has not processed for so many periods, and … */
#define LATE_SECONDS  2.0
#define OLD_SECONDS   600.0 /* a write that failed before is not the answer, if the question names no client */

typedef enum { whyUnknown, whyFine, whyHeldUp, whyStops } whyVerdict;
enum { stepIoc, stepRecord, stepPost, stepQueue, stepBuffer, stepNetwork, stepClient, stepWrite, STEPS };

typedef struct {
    whyVerdict verdict;
    char text[520];
} whyStep;

/* A record as it was at one moment. */
typedef struct {
    int      isRead;
    epicsTimeStamp time;
    int      pact, udf, sevr, stat, tse;
    double   disa, disv;
    char     scan[40];
} recordState;

typedef struct {
    ebpfMonSubscriptions *subs;
    const char *pv, *client;
    char     field[16];     /* "VAL" if the PV names none */
    /* the IOC */
    uint32_t iocId;
    pid_t    pid;
    char     ioc[EBPFMON_IOCNAME_SIZE];
    int      isRunning;
    int      isStill;       /* the record did not process between the two readings */
    unsigned others;        /* further IOCs with such a record */
    ebpfMonCatalogue *cat;
    ebpfMonMem *mem;
    long     record;
    /* subscriptions */
    long     known;         /* of the record; -1: not known, and "unknown" says why */
    char     unknown[160];
    unsigned enabled;       /* … that get updates: they are in the list of the record */
    unsigned monitors;      /* of pvAccess that are seen, of any client */
    unsigned matching;      /* to this field, of this client */
    ebpfMonFlowClient worst;
    ebpfMonFlowSubscription sub;
    whyStep  step[STEPS];
} why;

static void setStep(why *w, int step, whyVerdict verdict, const char *format, ...) EPICS_PRINTF_STYLE(4, 5);

static void setStep(why *w, int step, whyVerdict verdict, const char *format, ...)
{
    va_list ap;

    w->step[step].verdict = verdict;
    va_start(ap, format);
    vsnprintf(w->step[step].text, sizeof(w->step[step].text), format, ap);
    va_end(ap);
}

/* --- which record ------------------------------------------------------------------------------------------------ */

/* Takes a target, if it has this record. A running IOC is taken before one that starts. */
static void takeTarget(why *w, ebpfMonTarget *t, const char *record)
{
    long index = t->gone || !t->cat ? -1 : ebpfMonCatalogueFind(t->cat, record);

    if (index < 0)
        return;
    if (w->cat) {
        w->others++;
        return;
    }
    w->cat = ebpfMonCatalogueHold(t->cat);
    w->record = index;
    w->iocId = t->iocId;
    w->pid = t->pid;
    w->isRunning = t->running;
    snprintf(w->ioc, sizeof(w->ioc), "%s", t->name);
}

static void splitName(const char *pv, char *record, size_t size, char *field, size_t fieldSize)
{
    size_t n = strcspn(pv, ".{"), length;
    const char *from = pv[n] == '.' ? pv + n + 1 : "";

    snprintf(record, size, "%.*s", (int)n, pv);
    length = strspn(from, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    snprintf(field, fieldSize, "%.*s", length ? (int)length : 3, length ? from : "VAL");
}

/* 0, or -1: no IOC that is watched has this record. */
static int findRecord(why *w)
{
    ebpfMonTargets *targets = ebpfMonSubscriptionsGetCore(w->subs)->targets;
    char record[EBPFMON_NAME_SIZE];

    splitName(w->pv, record, sizeof(record), w->field, sizeof(w->field));
    ebpfMonTargetsLock(targets);
    for (int running = 1; running >= 0; running--)
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
            if (!t->running == !running)
                takeTarget(w, t, record);
    ebpfMonTargetsUnlock(targets);
    if (!w->cat)
        return -1;
    w->mem = ebpfMonMemNew(w->pid);
    return 0;
}

/* --- the IOC ----------------------------------------------------------------------------------------------------- */

static void judgeIoc(why *w)
{
    if (ebpfMonProcStandsStill(w->pid, w->pid))
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d) stands still: a signal or a debugger has stopped its process",
                w->ioc, (int)w->pid);
    else if (!w->isRunning)
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d): its iocInit is not done", w->ioc, (int)w->pid);
    else
        setStep(w, stepIoc, whyFine, "%s, pid %d", w->ioc, (int)w->pid);
}

/* --- the record -------------------------------------------------------------------------------------------------- */

/* The text of a field; "" if it cannot be read. */
static const char *readText(why *w, const char *name, char *text, size_t size)
{
    const ebpfMonRecord *r = &w->cat->rec[w->record];
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(w->cat, r->rtype, name);

    text[0] = 0;
    if (f && w->mem && ebpfMonFieldTextRead(w->mem, w->cat, r->addr, f, text, size))
        text[0] = 0;
    return text;
}

/* NaN: the record has no such field, it is no number, or it cannot be read. */
static double readNumber(why *w, const char *name)
{
    char text[EBPFMON_FIELD_TEXT], *end;
    double number;

    readText(w, name, text, sizeof(text));
    number = strtod(text, &end);
    return end == text || *end ? NAN : number;
}

/* Fields of the type DBF_MENU have their number in memory. */
static int readRaw(why *w, uint16_t offset, void *to, size_t size)
{
    return w->mem ? ebpfMonMemRead(w->mem, w->cat->rec[w->record].addr + offset, to, size) : -1;
}

static void readRecord(why *w, recordState *s)
{
    const ebpfMonCommon *c = &w->cat->common;
    uint16_t sevr, stat;
    uint8_t pact;
    int16_t tse;

    *s = (recordState){ .isRead = 0 };
    if (w->mem)
        ebpfMonMemFlush(w->mem);
    if (readRaw(w, c->time, &s->time, sizeof(s->time)) || readRaw(w, c->pact, &pact, sizeof(pact)) ||
        readRaw(w, c->sevr, &sevr, sizeof(sevr)) || readRaw(w, c->stat, &stat, sizeof(stat)) ||
        readRaw(w, c->tse, &tse, sizeof(tse)))
        return;
    s->isRead = 1;
    s->pact = pact;
    s->sevr = sevr;
    s->stat = stat;
    s->tse = tse;
    s->disa = readNumber(w, "DISA");
    s->disv = readNumber(w, "DISV");
    s->udf = readNumber(w, "UDF") > 0;
    readText(w, "SCAN", s->scan, sizeof(s->scan));
}

/* Seconds since the time stamp; less than 0: it has none, or does not show each processing (ioc/catalogue.h). */
static double findAge(const why *w, const recordState *s, epicsTimeStamp now)
{
    const ebpfMonRecord *r = &w->cat->rec[w->record];
    int stamps = w->cat->rtype[r->rtype].stamps;

    if (!s->time.secPastEpoch || s->tse || (r->flags & (EBPFMON_REC_TSE | EBPFMON_REC_UNDEFINED)) ||
        (stamps != EBPFMON_STAMPS_BASE && stamps != EBPFMON_STAMPS_SEEN))
        return -1;
    return epicsTimeDiffInSeconds(&now, &s->time);
}

/* A line of HANG_STACKS. 0, or -1: there are not so many. */
static int copyHangLine(unsigned index, char line[EBPFMON_HANG_LINE])
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    int isThere = index < published->health.hangLines;

    if (isThere)
        memcpy(line, published->health.hangLine[index], EBPFMON_HANG_LINE);
    ebpfMonPublishedUnlock();
    return isThere ? 0 : -1;
}

/* The hang of a thread that holds the lock set of the record. 0, or -1: there is none. */
static int findHang(why *w, char *text, size_t size)
{
    char begin[EBPFMON_IOCNAME_SIZE + 40], line[EBPFMON_HANG_LINE], record[EBPFMON_NAME_SIZE];
    const char *name;
    long other;

    snprintf(begin, sizeof(begin), "IOC %s (pid %d): ", w->ioc, (int)w->pid);
    for (unsigned i = 0; copyHangLine(i, line) == 0; i++) {
        name = strncmp(line, begin, strlen(begin)) == 0 ? strstr(line, " in record ") : NULL;
        if (!name)
            continue;
        name += strlen(" in record ");
        snprintf(record, sizeof(record), "%.*s", (int)strcspn(name, ", "), name);
        other = ebpfMonCatalogueFind(w->cat, record);
        if (other < 0 || (other != w->record && !ebpfMonLockSetsHasBoth(w->mem, w->cat, (uint32_t)other,
                                                                         (uint32_t)w->record)))
            continue;
        ebpfMonTextCopy(text, size, line + strlen(begin));
        return 0;
    }
    return -1;
}

static const char *nameAlarm(int stat)
{
    return stat >= 0 && stat < ALARM_NSTATUS ? epicsAlarmConditionStrings[stat] : "?";
}

/* Nonzero: its value is not that of its source, so what follows is of an old value. */
static int isSourceBad(const recordState *s)
{
    switch (s->sevr < INVALID_ALARM ? NO_ALARM : s->stat) {
    case READ_ALARM: case COMM_ALARM: case TIMEOUT_ALARM: case LINK_ALARM: case CALC_ALARM: case SCAN_ALARM:
    case HW_LIMIT_ALARM: case UDF_ALARM: case DISABLE_ALARM: case BAD_SUB_ALARM:
        return 1;
    default:
        return 0;
    }
}

/* What is wrong with the record: "text" is set. 0: nothing that is known. */
static int findFault(why *w, const recordState *before, const recordState *s, double age, char *text, size_t size)
{
    double period = strtod(s->scan, NULL);
    char hang[160];

    if (findHang(w, hang, sizeof(hang)) == 0)
        snprintf(text, size, "its lock set is held: %s", hang);
    else if (!isnan(s->disa) && s->disa == s->disv)
        snprintf(text, size, "it is disabled: DISA is %.0f, as DISV", s->disa);
    else if (s->pact && before->pact && memcmp(&s->time, &before->time, sizeof(s->time)) == 0 &&
             age >= ASYNC_SECONDS)
        snprintf(text, size, "PACT is 1: it is processing, and has not completed for %.0f s", age);
    else if (!s->time.secPastEpoch && s->udf)
        snprintf(text, size, "it has never processed and has no value: UDF is 1, SCAN is %s%s", s->scan,
                 s->pact ? ", PACT is 1" : "");
    else if (period > 0 && age > LATE_PERIODS * period && age > LATE_SECONDS)
        snprintf(text, size, "SCAN is %s, but it has not processed for %.1f s", s->scan, age);
    else if (isSourceBad(s))
        snprintf(text, size, "its value is not valid: alarm INVALID, %s", nameAlarm(s->stat));
    else
        return 0;
    return 1;
}

static void judgeRecord(why *w)
{
    recordState before, s;
    epicsTimeStamp now;
    char text[200];
    double age;

    readRecord(w, &before);
    epicsThreadSleep(AGAIN_SECONDS);
    readRecord(w, &s);
    epicsTimeGetCurrent(&now);
    if (!s.isRead || !before.isRead) {
        setStep(w, stepRecord, whyUnknown, "the memory of the IOC cannot be read now");
        return;
    }
    w->isStill = !s.pact && memcmp(&s.time, &before.time, sizeof(s.time)) == 0;
    age = findAge(w, &s, now);
    if (findFault(w, &before, &s, age, text, sizeof(text)))
        setStep(w, stepRecord, whyStops, "%s", text);
    else if (age >= 0)
        setStep(w, stepRecord, whyFine, "last processed %.1f s ago; SCAN %s%s%s%s", age, s.scan,
                s.sevr ? ", alarm " : "", s.sevr ? nameAlarm(s.stat) : "",
                readNumber(w, "DISP") > 0 ? "; DISP is 1: nobody may write" : "");
    else
        setStep(w, stepRecord, s.time.secPastEpoch ? whyUnknown : whyFine, "SCAN %s; %s", s.scan,
                s.time.secPastEpoch ? "its time stamp does not tell when it processed" : "it has not processed yet");
}

/* --- subscriptions ----------------------------------------------------------------------------------------------- */

static double badnessOf(const ebpfMonFlowClient *c, const ebpfMonFlowSubscription *s)
{
    return 1e6 * c->flow + 1e3 * s->mergedRate + s->waiting;
}

static void addSubscription(void *arg, const ebpfMonFlowClient *client, const ebpfMonFlowSubscription *sub)
{
    char record[EBPFMON_NAME_SIZE], field[16];
    why *w = arg;

    w->enabled += sub->isEnabled && !sub->monitor;
    w->monitors += sub->monitor != NULL;
    splitName(sub->pv, record, sizeof(record), field, sizeof(field));
    if (strcmp(field, w->field) != 0 || (w->client[0] && !ebpfMonFlowIsNamed(client, w->client)))
        return;
    if (!w->matching || badnessOf(client, sub) > badnessOf(&w->worst, &w->sub)) {
        w->worst = *client;
        w->sub = *sub;
    }
    w->matching++;
}

/* Compares VAL with what the record posted last. Stops: it is within the deadband, so it was not posted. Not known: VAL
 * was written and the record has not processed since; whether that was posted depends on the field (dbAccess.c, dbPut).
 * Else fine, and "text" is not set. */
static whyVerdict comparePosted(why *w, const char *last, const char *band, char *text, size_t size)
{
    double value = readNumber(w, "VAL"), posted = readNumber(w, last), deadband = readNumber(w, band);

    if (strcmp(w->field, "VAL") != 0 || isnan(value) || isnan(posted) || isnan(deadband) || value == posted ||
        deadband < 0 || (fabs(value - posted) > deadband && !w->isStill))
        return whyFine;
    if (fabs(value - posted) > deadband) {
        snprintf(text, size, "VAL is %.15g, and the last value that its processing has posted is %.15g: it was written "
                 "and has not processed since", value, posted);
        return whyUnknown;
    }
    snprintf(text, size, "VAL is %.15g and was not posted: it is within %s (%.15g) of the last posted value, %.15g",
             value, band, deadband, posted);
    return whyStops;
}

/* Who has subscribed to this record, and is not in the list of CA clients: it is in the list of the record
 * (dbCommon.mlis). QSRV has one subscription for values, and one for properties. */
static const char *describeOthers(why *w, char *text, size_t size)
{
    const ebpfMonRecord *r = &w->cat->rec[w->record];
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(w->cat, r->rtype, "MLIS");
    unsigned count[EBPFMON_FLOW_OWNERS], all, qsrv;
    struct layoutList list;

    text[0] = 0;
    all = ebpfMonSubscriptionsCountOthers(w->subs, w->iocId, w->record, count);
    qsrv = count[ebpfMonFlowQsrv1] + count[ebpfMonFlowQsrv2];
    if (!f || readRaw(w, f->offset, &list, sizeof(list)) || list.count < 0 || !list.first != !list.count) {
        snprintf(text, size, "; others are not known");
        return text;
    }
    if (qsrv)
        snprintf(text, size, "; QSRV has %u for pvAccess", qsrv);
    if (count[ebpfMonFlowInside])
        ebpfMonTextAdd(text, size, "; %u within the IOC", count[ebpfMonFlowInside]);
    if ((unsigned)list.count > w->enabled + all - count[ebpfMonFlowNobody])
        ebpfMonTextAdd(text, size, "; %u of others, whose way is not known",
                       (unsigned)list.count - w->enabled - all + count[ebpfMonFlowNobody]);
    return text;
}

/* Nonzero: there is a subscription for pvAccess, and no client of it is seen. */
static int hasHiddenClients(why *w)
{
    unsigned count[EBPFMON_FLOW_OWNERS];

    ebpfMonSubscriptionsCountOthers(w->subs, w->iocId, w->record, count);
    return !w->monitors && count[ebpfMonFlowQsrv1] + count[ebpfMonFlowQsrv2] + count[ebpfMonFlowNobody];
}

static void judgePost(why *w)
{
    int isArchive = w->matching && !(w->sub.mask & DBE_VALUE);
    char text[200], others[100];
    whyVerdict posted = comparePosted(w, isArchive ? "ALST" : "MLST", isArchive ? "ADEL" : "MDEL", text, sizeof(text));

    if (w->known >= 0 && !w->matching && w->client[0] && hasHiddenClients(w))
        setStep(w, stepPost, whyUnknown, "no client \"%.60s\" has subscribed by Channel Access; a pvAccess client has, "
                "whose connection is older than the monitor", w->client);
    else if (w->known >= 0 && !w->matching && w->client[0])
        setStep(w, stepPost, whyStops, "no client \"%.60s\" has subscribed to it", w->client);
    else if (w->matching && !(w->sub.mask & (DBE_VALUE | DBE_LOG)))
        setStep(w, stepPost, whyStops, "the client has not subscribed to values, only to%s%s",
                w->sub.mask & DBE_ALARM ? " alarms" : "", w->sub.mask & DBE_PROPERTY ? " properties" : "");
    else if (w->matching && !w->sub.isEnabled)
        setStep(w, stepPost, whyStops, "its subscription is switched off (the client may not read, or is new)");
    else if (posted != whyFine)
        setStep(w, stepPost, posted, "%s", text);
    else if (w->matching && strchr(w->sub.pv, '{'))
        setStep(w, stepPost, whyUnknown, "what the filter of the channel leaves out: %s", strchr(w->sub.pv, '{'));
    else if (w->known < 0)
        setStep(w, stepPost, whyUnknown, "%s", w->unknown);
    else if (!w->matching)
        setStep(w, stepPost, whyUnknown, "no CA client has subscribed%s", describeOthers(w, others, sizeof(others)));
    else
        setStep(w, stepPost, whyFine, "%u subscription%s%s%s", w->matching, w->matching > 1 ? "s; the worst is of " :
                " of ", w->worst.name, describeOthers(w, others, sizeof(others)));
}

/* --- the way to the client --------------------------------------------------------------------------------------- */

static double secondsSince(uint64_t at)
{
    return (double)(ebpfMonClockMonotonic() - at) / 1e9;
}

/* What the IOC has for the client. */
static void describeQueue(const why *w, char *text, size_t size)
{
    const ebpfMonFlowMonitor *m = w->sub.monitor;

    text[0] = 0;
    if (!w->sub.hasQueue)
        snprintf(text, size, "what the IOC has for it is not known");
    else
        snprintf(text, size, "%u updates wait", w->sub.waiting);
    if (w->sub.hasQueue && w->sub.isCopied)
        ebpfMonTextAdd(text, size, ", %llu merged", (unsigned long long)w->sub.merged);
    else if (w->sub.hasQueue)
        ebpfMonTextAdd(text, size, ", merged: not known");
    if (w->sub.hasQueue && m && m->sourceKind == ebpfMonSourceShared && m->sharers > 1)
        ebpfMonTextAdd(text, size, ", in the one subscription of QSRV for %u clients", m->sharers);
    if (m && m->overruns)
        ebpfMonTextAdd(text, size, "; %llu updates%s left values out", (unsigned long long)m->overruns,
                       m->unread || m->isAtLeast ? " at least" : "");
}

static void judgeQueue(why *w)
{
    const ebpfMonFlowClient *c = &w->worst;
    const ebpfMonFlowSubscription *s = &w->sub;
    const ebpfMonFlowMonitor *m = s->monitor;
    char text[160];

    describeQueue(w, text, sizeof(text));
    if (c->flow == ebpfMonFlowPaused && m)
        setStep(w, stepQueue, whyStops, "the client has stopped this monitor since %.0f s", secondsSince(c->since));
    else if (c->flow == ebpfMonFlowPaused)
        setStep(w, stepQueue, whyStops, "the client has asked for a pause since %.0f s; %s", secondsSince(c->since),
                text);
    else if (c->flow == ebpfMonFlowIocWaits)
        setStep(w, stepQueue, whyStops, "updates wait in the IOC since %.0f s, and its thread does not take them (%s, "
                "of this PV)", secondsSince(c->since), text);
    else if (c->flow > ebpfMonFlowIocWaits && (s->waiting || s->mergedRate > 0))
        setStep(w, stepQueue, whyHeldUp, "%s; the newest is not delivered", text);
    else if (s->mergedRate > 0)
        setStep(w, stepQueue, whyStops, "updates are merged, %.1f/s: the queue is full, or the client pauses again and "
                "again", s->mergedRate);
    else if (m && m->overrunRate > 0 && c->flow == ebpfMonFlowFine)
        setStep(w, stepQueue, whyStops, "%.1f updates/s leave values out: the server's queue for this client "
                "(queueSize %u) is full again and again", m->overrunRate, m->queueSize);
    else
        setStep(w, stepQueue, s->hasQueue ? whyFine : whyUnknown, "%s", text);
}

static void judgeConnection(why *w)
{
    const ebpfMonFlowClient *c = &w->worst;
    unsigned long unsent = c->inBuffer + (c->hasTcp ? c->tcp.notSent : 0ul);
    int isHeldUp = c->flow > ebpfMonFlowIocWaits && unsent;

    setStep(w, stepBuffer, isHeldUp ? whyHeldUp : c->hasTcp ? whyFine : whyUnknown, "%lu bytes are not sent%s", unsent,
            c->hasTcp ? "" : "; the connection is not seen");
    if (c->flow == ebpfMonFlowNetwork)
        setStep(w, stepNetwork, whyStops, "nothing is acknowledged since %.0f s: %u bytes, sent again %u times",
                secondsSince(c->since), c->tcp.waiting, c->tcp.retransmits);
    else
        setStep(w, stepNetwork, c->hasTcp ? whyFine : whyUnknown, "%s",
                c->hasTcp ? "what was sent is acknowledged" : "the connection is not seen");
}

static void judgeClient(why *w)
{
    const ebpfMonFlowClient *c = &w->worst;
    char who[240];

    snprintf(who, sizeof(who), "%s (%s", c->name, c->peer);
    if (c->pid)
        snprintf(who + strlen(who), sizeof(who) - strlen(who), ", %s, pid %d", c->command, (int)c->pid);
    if (c->flow == ebpfMonFlowClosed)
        setStep(w, stepClient, whyStops, "the client takes no updates since %.0f s: %s); all %u that it had room for "
                "(queueSize, pipeline) are sent", secondsSince(c->since), who, w->sub.monitor->queueSize);
    else if (c->flow == ebpfMonFlowNotRead)
        setStep(w, stepClient, whyStops, "the client does not read since %.0f s: %s); %u bytes have come to it%s",
                secondsSince(c->since), who, c->unread, c->hasPeer ? "" : " at least");
    else if (c->hasPeer && c->flow != ebpfMonFlowIocStopped)
        setStep(w, stepClient, whyFine, "it has read all that came: %s)", who);
    else
        setStep(w, stepClient, whyUnknown, "%s): whether it reads is seen on its own host", who);
}

/* --- the answer -------------------------------------------------------------------------------------------------- */

/* The other way: what the client, or anybody, has written last. If a client has written and not subscribed, the
 * question is of its write, and "no client has subscribed" is not the answer. */
static void judgeWrite(why *w)
{
    static const whyVerdict verdicts[] = { whyUnknown, whyFine, whyUnknown, whyHeldUp, whyStops };
    ebpfMonWriteStory story;

    ebpfMonWhyWrite(w->mem, w->pid, w->cat, (uint32_t)w->record, w->ioc, w->field, w->client, &story);
    if (story.fate == ebpfMonWriteStops && !w->client[0] && story.age > OLD_SECONDS)
        story.fate = ebpfMonWriteHolds; /* nobody has asked for it */
    setStep(w, stepWrite, verdicts[story.fate], "%s", story.text);
    if (w->client[0] && !w->matching && story.fate != ebpfMonWriteNotSeen && w->step[stepPost].verdict == whyStops)
        setStep(w, stepPost, whyUnknown, "no client \"%.60s\" has subscribed to it; it has written", w->client);
}

static void followValue(why *w)
{
    judgeIoc(w);
    judgeRecord(w);
    w->known = ebpfMonSubscriptionsEach(w->subs, w->iocId, w->record, addSubscription, w, w->unknown,
                                        sizeof(w->unknown));
    judgePost(w);
    for (int i = stepQueue; i <= stepClient; i++)
        setStep(w, i, whyUnknown, "%s", w->known < 0 ? w->unknown : "no subscription");
    if (w->matching) {
        judgeQueue(w);
        judgeConnection(w);
        judgeClient(w);
    }
    judgeWrite(w);
}

static void writeAnswer(const why *w, char *text, size_t size)
{
    static const char *const verdicts[] = { "not known", "fine", "held up", "here it stops" };
    static const char *const names[STEPS] = {
        "IOC", "record", "post", "queue", "send buffer", "network", "client", "write"
    };
    int first = 0;

    while (first < STEPS && w->step[first].verdict != whyStops)
        first++;
    if (first < STEPS)
        ebpfMonTextAdd(text, size, "%s: %s\n", names[first], w->step[first].text);
    else
        ebpfMonTextAdd(text, size, "nothing stops, as far as is known\n");
    for (int i = 0; i < STEPS; i++)
        ebpfMonTextAdd(text, size, "  %-12s %-14s %s\n", names[i], verdicts[w->step[i].verdict], w->step[i].text);
    if (w->others)
        ebpfMonTextAdd(text, size, "%u more watched IOCs have such a record\n", w->others);
}

void ebpfMonWhyAnswer(ebpfMonSubscriptions *subs, const char *pv, const char *client, char *text, size_t size)
{
    why *w = calloc(1, sizeof(*w));

    text[0] = 0;
    if (!w || !ebpfMonSubscriptionsGetCore(subs)) {
        snprintf(text, size, "%s\n", w ? "the monitor does not run" : "out of memory");
        free(w);
        return;
    }
    w->subs = subs;
    w->pv = pv;
    w->client = client ? client : "";
    if (ebpfMonSubscriptionsLook(subs))
        ebpfMonTextAdd(text, size, "Reading the clients takes long. This is of the last complete list:\n");
    if (findRecord(w)) {
        ebpfMonTextAdd(text, size, "no IOC that is watched has the record of %.100s\n", pv);
    } else {
        followValue(w);
        writeAnswer(w, text, size);
        ebpfMonMemFree(w->mem);
        ebpfMonCatalogueRelease(w->cat);
    }
    free(w);
}
