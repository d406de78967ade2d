/* SPDX-License-Identifier: BSD-3-Clause */
#include <errlog.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "model/published.h"

/* --- health --- */

const char *ebpfMonHealthEvent(const ebpfMonHealth *h, unsigned i)
{
    if (i >= h->events || i >= EBPFMON_HEALTH_EVENTS)
        return NULL;
    return h->event[(h->eventHead + EBPFMON_HEALTH_EVENTS - i) % EBPFMON_HEALTH_EVENTS];
}

int ebpfMonHealthHasTrouble(const ebpfMonHealth *h)
{
    return h->gone || h->hangs || h->still || h->ended;
}

/* --- all --- */

/* The published values and their lock. */

/* One per process: the header tells why. It has some 2 MB, but most pages are never used, and take no memory. */
static ebpfMonPublished thePublished;
static ebpfMonLazyMutex publishedLock = EBPFMON_LAZY_MUTEX; /* lazy, because records and tests may use it before any
                                                             * code of ours has run */
static int isInitialised;                                   /* under the lock, as the listener */
static void (*publishedListener)(ebpfMonGroup group);

/* A function, because an initialiser would make all of the struct a part of the program's file. */
static void setStartValues(void)
{
    ebpfMonPutValues *puts = &thePublished.puts;

    isInitialised = 1;
    thePublished.state = ebpfMonStarting;
    thePublished.ownState = ebpfMonStarting;
    thePublished.host.status = ebpfMonHostUnknown;
    strcpy(thePublished.stateMessage, "starting: the monitor begins after iocInit");
    strcpy(thePublished.ownMessage, thePublished.stateMessage);
    strcpy(thePublished.log.caPutLogLine, EBPFMON_NO_PUT);
    strcpy(thePublished.log.message, EBPFMON_NO_LOG);
    strcpy(thePublished.rules.message, "no rules: every put is expected");
    for (unsigned i = 0; i < EBPFMON_PUTS_MAX; i++)
        puts->all.order[i] = puts->of[0].order[i] = puts->of[1].order[i] = (uint8_t)i;
}

ebpfMonPublished *ebpfMonPublishedLock(void)
{
    ebpfMonLazyMutexLock(&publishedLock);
    if (!isInitialised)
        setStartValues();
    return &thePublished;
}

void ebpfMonPublishedUnlock(void)
{
    ebpfMonLazyMutexUnlock(&publishedLock);
}

void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group))
{
    ebpfMonPublishedLock();
    publishedListener = changed;
    ebpfMonPublishedUnlock();
}

void ebpfMonPublishedNotify(ebpfMonGroup group)
{
    void (*changed)(ebpfMonGroup group);

    /* without the lock, because the listener takes locks of its own */
    ebpfMonPublishedLock();
    changed = publishedListener;
    ebpfMonPublishedUnlock();
    if (changed)
        changed(group);
}

/* Calculates state and message. Nonzero: they have changed. Under the lock. */
static int updateState(ebpfMonPublished *published)
{
    int isStuck = published->stuck[0] && published->ownState != ebpfMonFailed;
    int isMute = published->hasNoTables && published->ownState == ebpfMonRunning;
    ebpfMonState state = isStuck || isMute ? ebpfMonDegraded : published->ownState;
    char message[sizeof(published->stateMessage)];
    int changed;

    if (isStuck)
        snprintf(message, sizeof(message), "no progress: %s. What it does for others is missing", published->stuck);
    else if (isMute)
        strcpy(message, "no tables: the PVA server does not run (see the log). Where lo is the only interface, set "
               "EPICS_PVAS_INTF_ADDR_LIST=127.0.0.1");
    else
        memcpy(message, published->ownMessage, sizeof(message));
    if (state == ebpfMonRunning && published->remark[0])
        ebpfMonTextAdd(message, sizeof(message), "; %s", published->remark);
    changed = published->state != state || strcmp(published->stateMessage, message) != 0;
    published->state = state;
    memcpy(published->stateMessage, message, sizeof(message));
    if (state == ebpfMonStarting || state == ebpfMonFailed) { /* else publish/publisher.c */
        published->host.status = state == ebpfMonFailed ? ebpfMonHostTrouble : ebpfMonHostUnknown;
        memcpy(published->host.text, message, sizeof(message));
    }
    epicsTimeGetCurrent(&published->time[ebpfMonGroupState]);
    return changed;
}

static void notifyState(ebpfMonState state, const char *message)
{
    if (state >= ebpfMonDegraded)
        errlogSevPrintf(state == ebpfMonFailed ? errlogMajor : errlogMinor, "ebpfMon: %s\n", message);
    for (int g = 0; g < ebpfMonGroupCount; g++) /* the severities of all PVs follow the state */
        ebpfMonPublishedNotify((ebpfMonGroup)g);
}

void ebpfMonPublishedSetState(ebpfMonState state, const char *message)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    char text[sizeof(published->stateMessage)];
    int changed;

    published->ownState = state;
    ebpfMonTextCopy(published->ownMessage, sizeof(published->ownMessage), message);
    changed = updateState(published);
    state = published->state;
    memcpy(text, published->stateMessage, sizeof(text));
    ebpfMonPublishedUnlock();
    if (changed)
        notifyState(state, text);
}

void ebpfMonPublishedSetRemark(const char *text)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    int changed;

    ebpfMonTextCopy(published->remark, sizeof(published->remark), text);
    changed = updateState(published);
    ebpfMonPublishedUnlock();
    if (changed)
        ebpfMonPublishedNotify(ebpfMonGroupState);
}

void ebpfMonPublishedSetStuck(const char *stuck)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    int was = published->stuck[0], changed;
    char text[sizeof(published->stateMessage)];
    ebpfMonState state;

    ebpfMonTextCopy(published->stuck, sizeof(published->stuck), stuck);
    changed = updateState(published);
    state = published->state;
    memcpy(text, published->stateMessage, sizeof(text));
    ebpfMonPublishedUnlock();
    if (!was != !stuck[0])
        notifyState(state, text);
    else if (changed) /* only the number of seconds has changed: no message */
        ebpfMonPublishedNotify(ebpfMonGroupState);
}

int ebpfMonPublishedAddWatch(const char *record)
{
    ebpfMonPublished *published;
    ebpfMonWatchRow *row;
    unsigned i;
    int found = -1;

    if (!record[0] || strlen(record) >= EBPFMON_NAME_SIZE)
        return -1;
    published = ebpfMonPublishedLock();
    for (i = 0; i < published->watched.count && strcmp(published->watched.row[i].record, record) != 0; i++)
        ;
    if (i < published->watched.count) {
        found = (int)i;
    } else if (i < EBPFMON_WATCH_MAX) {
        row = &published->watched.row[i];
        memset(row, 0, sizeof(*row));
        strcpy(row->record, record);
        strcpy(row->putLast, EBPFMON_NO_PUT);
        row->latMean = row->latP99 = row->latMax = NAN;
        published->watched.count++;
        found = (int)i;
    }
    ebpfMonPublishedUnlock();
    return found;
}

void ebpfMonPublishedSelectRoot(const char *record)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    ebpfMonTextCopy(published->chains.selectedRoot, sizeof(published->chains.selectedRoot), record);
    ebpfMonPublishedUnlock();
}

/* Under the lock. */
static void countOpen(ebpfMonPublished *published)
{
    uint64_t open = published->unexpected.count - published->unexpected.acknowledged;

    published->unexpected.open = open < INT_MAX ? (int)open : INT_MAX;
}

/* Logs an unexpected put. The text is cut so that the end stays, which tells what to do: errlog.c takes 256 bytes
 * (MIN_MESSAGE_SIZE) with the severity, and ends a longer message with "<<TRUNCATED>>". */
static void logUnexpected(const ebpfMonPut *put)
{
    static const char todo[] = "See PUT_BAD_LOG; acknowledge by PUT_BAD_ACK or ebpfMonPutAck";
    char line[EBPFMON_LINE_SIZE], begin[256 - sizeof("sevr=major ebpfMon: unexpected put (): . \n") - sizeof(todo)];

    ebpfMonPutLine(put, line, sizeof(line));
    ebpfMonTextCopy(begin, sizeof(begin) - strlen(put->rule), line);
    errlogSevPrintf(errlogMajor, "ebpfMon: unexpected put (%s): %s. %s\n", put->rule, begin, todo);
}

/* In the place of the one that was published first, and in order by its time. Under the lock. */
static void keepUnexpected(ebpfMonUnexpectedValues *values, const ebpfMonPut *put)
{
    unsigned index = (unsigned)(values->count++ % EBPFMON_UNEXPECTED_MAX), at = 0;

    if (values->kept == EBPFMON_UNEXPECTED_MAX) {
        while (values->order[at] != index)
            at++;
        memmove(&values->order[at], &values->order[at + 1], --values->kept - at);
    }
    for (at = 0; at < values->kept && put->at < values->put[values->order[at]].at; at++)
        ;
    memmove(&values->order[at + 1], &values->order[at], values->kept++ - at);
    values->order[at] = (uint8_t)index;
    values->put[index] = *put;
    values->put[index].serial = values->count;
}

void ebpfMonPublishedAddUnexpected(const ebpfMonPut *put)
{
    ebpfMonPublished *published;
    int first;

    if (!put->unexpected)
        return;
    published = ebpfMonPublishedLock();
    keepUnexpected(&published->unexpected, put);
    first = !published->unexpected.open;
    countOpen(published);
    ebpfMonPublishedSetTime(published, ebpfMonGroupUnexpected, put->time, put->at); /* not before that of an
                                                                                     * acknowledgement */
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupUnexpected);
    if (first)
        logUnexpected(put);
}

void ebpfMonPublishedRestoreGone(const ebpfMonGoneIoc *ioc)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    if (published->restored < EBPFMON_HEALTH_GONE)
        published->restoredIoc[published->restored++] = *ioc;
    ebpfMonPublishedUnlock();
}

void ebpfMonPublishedRestoreUnexpected(const ebpfMonPut *put)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    keepUnexpected(&published->unexpected, put);
    published->unexpected.restored = published->unexpected.count;
    countOpen(published);
    ebpfMonPublishedSetTime(published, ebpfMonGroupUnexpected, put->time, put->at);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupUnexpected);
}

const ebpfMonPut *ebpfMonPublishedGetUnexpected(const ebpfMonPublished *published, unsigned i)
{
    const ebpfMonUnexpectedValues *values = &published->unexpected;

    for (unsigned n = 0; n < values->kept; n++) {
        const ebpfMonPut *put = &values->put[values->order[n]];

        if (put->serial > values->acknowledged && i-- == 0)
            return put;
    }
    return NULL;
}

const ebpfMonPut *ebpfMonPublishedGetNewestUnexpected(const ebpfMonPublished *published)
{
    const ebpfMonPut *open = ebpfMonPublishedGetUnexpected(published, 0);

    return open || !published->unexpected.kept ? open : &published->unexpected.put[published->unexpected.order[0]];
}

const ebpfMonPut *ebpfMonPublishedGetLastUnexpected(const ebpfMonPublished *published)
{
    return published->unexpected.count ?
           &published->unexpected.put[(published->unexpected.count - 1) % EBPFMON_UNEXPECTED_MAX] : NULL;
}

uint64_t ebpfMonPublishedCountUnexpected(void)
{
    uint64_t number = ebpfMonPublishedLock()->unexpected.count;

    ebpfMonPublishedUnlock();
    return number;
}

void ebpfMonPublishedSetUnexpectedShown(ebpfMonShown where, uint64_t number)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    if (number > published->unexpected.shown[where])
        published->unexpected.shown[where] = number;
    ebpfMonPublishedUnlock();
}

unsigned ebpfMonPublishedAcknowledge(ebpfMonShown where)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    uint64_t upTo = published->unexpected.shown[where], before = published->unexpected.acknowledged;
    int changed;
    unsigned left;

    if (published->unexpected.shown[ebpfMonShownByPvs] > upTo)
        upTo = published->unexpected.shown[ebpfMonShownByPvs];
    changed = upTo > published->unexpected.acknowledged;
    if (changed) {
        published->unexpected.acknowledged = upTo;
        countOpen(published);
        epicsTimeGetCurrent(&published->time[ebpfMonGroupUnexpected]);
        published->timeAt[ebpfMonGroupUnexpected] = ebpfMonClockMonotonic();
    }
    left = (unsigned)published->unexpected.open;
    ebpfMonPublishedUnlock();
    if (changed) {
        ebpfMonPublishedNotify(ebpfMonGroupUnexpected);
        errlogSevPrintf(errlogInfo, "ebpfMon: %llu unexpected puts acknowledged, %u open\n",
                        (unsigned long long)(upTo - before), left);
    }
    return left;
}

/* --- puts --- */

/* The puts of the published values, the newest first, and the times of groups. */

#define LATE_SECONDS 15.0 /* what sets the time of a group is not later than that */

/* Nonzero: "a" is earlier than "b", and the clock was not set back in between. */
static int isEarlier(const epicsTimeStamp *a, const epicsTimeStamp *b)
{
    return epicsTimeLessThan(a, b) && epicsTimeDiffInSeconds(b, a) < LATE_SECONDS;
}

/* Moves the put up to its place in the order of times. */
static void placeRow(ebpfMonPutList *list, unsigned from)
{
    uint8_t index = list->order[from];
    unsigned at = 0;

    while (at < from && list->put[index].at < list->put[list->order[at]].at)
        at++;
    memmove(&list->order[at + 1], &list->order[at], from - at);
    list->order[at] = index;
}

/* A put is published when everything about it is known: seconds after a later put if the IOC answered it and did not
 * make it, an hour if the IOC stood still. So a list has it in the order of times. */
static void addToList(ebpfMonPutValues *values, ebpfMonPutList *list, const ebpfMonPut *put)
{
    unsigned at = list->kept < EBPFMON_PUTS_MAX ? list->kept : EBPFMON_PUTS_MAX - 1;
    ebpfMonPut *row = &list->put[list->order[at]];

    if (list->kept < EBPFMON_PUTS_MAX)
        list->kept++;
    else if (put->at < row->at)
        return;
    *row = *put;
    row->serial = ++values->placed;
    placeRow(list, at);
}

#define RUN_NS   (60 * EBPFMON_SECOND_NS) /* after such a pause another run begins */
#define RUN_ROWS 40
#define WRITER_ROWS 100 /* from so many rows on, a writer has one row for each further PV */

/* More puts of one run are one row. Of what people do each put counts; links write all the time. */
static const unsigned runRows[ebpfMonPutKinds] = { [ebpfMonPutByClient] = RUN_ROWS, [ebpfMonPutAutomatic] = 10 };

/* Nonzero: one program, whatever its number, or one link made both puts. */
static int isOfSameWriter(const ebpfMonPut *a, const ebpfMonPut *b)
{
    return strcmp(a->user, b->user) == 0 && strcmp(a->host, b->host) == 0 && strcmp(a->realUser, b->realUser) == 0 &&
           strcmp(a->command, b->command) == 0 && strcmp(a->container, b->container) == 0 &&
           strcmp(a->link, b->link) == 0 && strcmp(a->linkIoc, b->linkIoc) == 0 &&
           (a->link[0] || strcmp(a->thread, b->thread) == 0) && a->through == b->through;
}

/* Nonzero: of two puts of one writer: both are to one PV, with one cause and one result. One that became another value
 * is not hidden among those that were made as sent. */
static int isOfSameRun(const ebpfMonPut *a, const ebpfMonPut *b)
{
    return strcmp(a->pv, b->pv) == 0 && strcmp(a->ioc, b->ioc) == 0 && strcmp(a->cause, b->cause) == 0 &&
           strcmp(a->rule, b->rule) == 0 && a->result == b->result && !a->after[0] == !b->after[0];
}

/* Finds the rows of the run that this put continues, whatever stands between them. Returns their number; the newest
 * comes first. Adds to *ofWriter the rows of its writer. */
static unsigned findRun(const ebpfMonPutList *list, const ebpfMonPut *put, unsigned most, unsigned at[RUN_ROWS],
                        unsigned *ofWriter)
{
    uint64_t next = put->at, nextOfWriter = next;
    unsigned rows = 0;

    for (unsigned i = 0; i < list->kept && rows < most; i++) {
        const ebpfMonPut *row = &list->put[list->order[i]];

        if (row->at < nextOfWriter && nextOfWriter - row->at > RUN_NS)
            break;
        if (put->at < (row->run.count ? row->run.at : row->at) || !isOfSameWriter(row, put))
            continue;
        nextOfWriter = row->at;
        ++*ofWriter;
        if ((row->at < next && next - row->at > RUN_NS) || !isOfSameRun(row, put))
            continue;
        at[rows++] = i;
        next = row->at;
        if (row->run.count)
            break; /* it stands for the older ones */
    }
    return rows;
}

/* Adds the put to its run, if the run is long enough to be one row: the newest put, the number of puts, and the first.
 * Returns 0: the put is a row of its own. */
static int addToRun(ebpfMonPutValues *values, ebpfMonPutKind kind, const ebpfMonPut *put)
{
    ebpfMonPutList *list = &values->of[kind];
    unsigned at[RUN_ROWS], ofWriter = 0, rows = findRun(list, put, runRows[kind], at, &ofWriter);
    uint64_t count = 1;
    ebpfMonPutRun run;
    ebpfMonPut *row;

    if (!rows || (rows < runRows[kind] && ofWriter < WRITER_ROWS && !list->put[list->order[at[0]]].run.count))
        return 0;
    row = &list->put[list->order[at[rows - 1]]];
    run = row->run;
    if (!run.count) {
        run.at = row->at;
        run.time = row->time;
        ebpfMonTextCopy(run.first, sizeof(run.first), row->val);
    }
    row = &list->put[list->order[at[0]]];
    for (unsigned i = rows; i-- > 0;) {
        uint8_t index = list->order[at[i]];

        count += list->put[index].run.count ? list->put[index].run.count : 1;
        if (!i)
            break; /* the newest row stays */
        memmove(&list->order[at[i]], &list->order[at[i] + 1], --list->kept - at[i]);
        list->order[list->kept] = index;
    }
    if (put->at >= row->at)
        *row = *put;
    run.count = count;
    row->run = run;
    row->serial = ++values->placed;
    placeRow(list, at[0]);
    return 1;
}

void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put)
{
    ebpfMonPutValues *values = &published->puts;
    ebpfMonPutKind kind = ebpfMonPutIsAutomatic(put) ? ebpfMonPutAutomatic : ebpfMonPutByClient;

    addToList(values, &values->all, put);
    if (!addToRun(values, kind, put))
        addToList(values, &values->of[kind], put);
}

void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time, uint64_t at)
{
    if (at < published->timeAt[group] || isEarlier(&time, &published->time[group]))
        return;
    published->time[group] = time;
    published->timeAt[group] = at;
}

static const ebpfMonPut *getPut(const ebpfMonPutList *list, unsigned i)
{
    return i < list->kept ? &list->put[list->order[i]] : NULL;
}

const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i)
{
    return getPut(&published->puts.all, i);
}

const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i)
{
    return getPut(&published->puts.of[kind], i);
}
