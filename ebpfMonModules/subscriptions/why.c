/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <caeventmask.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/netnsSocket.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "model/put.h"
#include "put/packetEvents.h"
#include "search/search.h"
#include "subscriptions/why.h"
#include "subscriptions/whyRecord.h"
#include "subscriptions/whyWrite.h"

#define OLD_SECONDS 600.0 /* a write that failed before is not the answer, if the question names no client */

typedef enum { whyUnknown, whyFine, whyHeldUp, whyStops } whyVerdict;
enum { stepIoc, stepRecord, stepPost, stepQueue, stepBuffer, stepNetwork, stepClient, stepBehind, stepWrite, STEPS };

typedef struct {
    whyVerdict verdict;
    char text[760];
} whyStep;

typedef struct {
    ebpfMonSubscriptions *subs;
    const char *pv, *client;
    char     field[16];     /* "VAL" if the PV names none */
    ebpfMonWhyPlace at;
    int      isStill;       /* the record did not process between the two readings */
    /* subscriptions */
    long     known;         /* of the record; -1: not known, and "unknown" says why */
    char     unknown[160];
    unsigned enabled;       /* … that get updates: they are in the list of the record */
    unsigned monitors;      /* of pvAccess that are seen, of any client */
    unsigned matching;      /* to this field, of this client */
    int      isUnconnected; /* this client has no channel */
    int      isRenamed;     /* perhaps it has subscribed by another name: at a gateway of which nobody has this one */
    ebpfMonFlowClient worst;
    ebpfMonFlowSubscription sub;
    ebpfMonFlowClient behind; /* … if that is a gateway, the worst of its clients … */
    unsigned behinds;       /* … of so many that match */
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

static void splitName(const char *pv, char *record, size_t size, char *field, size_t fieldSize)
{
    size_t n = ebpfMonPutGetRecordLength(pv), length;
    const char *from = pv[n] == '.' ? pv + n + 1 : "";

    snprintf(record, size, "%.*s", (int)n, pv);
    length = strspn(from, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"); /* dbFindFieldPart */
    snprintf(field, fieldSize, "%.*s", length ? (int)length : 3, length ? from : "VAL");
}

/* --- the IOC ----------------------------------------------------------------------------------------------------- */

/* Nonzero: two servers have answered for the name, and one of them is on the IOC's host, the other on another one. Of
 * one host it may be the same server at two addresses. */
static int findOtherHost(const why *w, char *text, size_t size)
{
    const ebpfMonModuleCore *core = ebpfMonSubscriptionsGetCore(w->subs);
    char end[2][EBPFMON_PEERTEXT_SIZE + 8];
    ebpfMonOwnAddresses own;
    ebpfMonSearchState s;

    ebpfMonOwnAddressesRead(w->at.pid, &own);
    for (ebpfMonSearchProtocol protocol = ebpfMonSearchCa; protocol <= ebpfMonSearchPva; protocol++) {
        int here = 0;

        ebpfMonSearchGetState(core->search, protocol, w->pv, &s);
        for (unsigned i = 0; i < s.servers; i++) {
            here += ebpfMonOwnAddressesHave(&own, s.server[i].saddr, s.server[i].saddr6);
            ebpfMonPeerTextEnd(s.server[i].saddr, s.server[i].saddr6, s.server[i].sport, end[i], sizeof(end[i]));
        }
        if (s.servers < 2 || here != 1)
            continue;
        snprintf(text, size, "two servers have answered for the name in the last 10 minutes, %s and %s: a client gets "
                 "the one that answers first; here follows IOC %s", end[0], end[1], w->at.ioc);
        return 1;
    }
    return 0;
}

static void judgeIoc(why *w)
{
    const ebpfMonWhyPlace *p = &w->at;
    char text[300];

    if (ebpfMonProcIsFrozen(p->pid))
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d) is frozen: somebody has paused its container, or its control "
                "group", p->ioc, (int)p->pid);
    else if (ebpfMonProcStandsStill(p->pid, p->pid))
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d) stands still: a signal or a debugger has stopped its process",
                p->ioc, (int)p->pid);
    else if (!p->isRunning)
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d): its iocInit is not done", p->ioc, (int)p->pid);
    else if (p->others && ebpfMonProcNetns(p->pid) == ebpfMonProcNetns(p->otherPid))
        setStep(w, stepIoc, whyStops, "IOC %s (pid %d) and IOC %s (pid %d) both have it: a client gets the one that "
                "answers first; here follows the first one", p->ioc, (int)p->pid, p->other, (int)p->otherPid);
    else if (findOtherHost(w, text, sizeof(text)))
        setStep(w, stepIoc, whyStops, "%s", text);
    else
        setStep(w, stepIoc, whyFine, "%s, pid %d", p->ioc, (int)p->pid);
}

static void judgeRecord(why *w)
{
    static const whyVerdict verdicts[] = { whyUnknown, whyFine, whyUnknown, whyStops };
    uint32_t rtype = w->at.cat->rec[w->at.record].rtype;
    char text[sizeof(w->step[0].text)];
    ebpfMonRecordState state = ebpfMonWhyRecord(ebpfMonSubscriptionsGetCore(w->subs)->targets, &w->at, &w->isStill,
                                                text, sizeof(text));

    setStep(w, stepRecord, verdicts[state], "%s", text);
    if (!ebpfMonCatalogueFieldNamed(w->at.cat, rtype, w->field) && strcmp(w->field, "RTYP") != 0)
        setStep(w, stepRecord, whyStops, "it is of the type %s, which has no field %s", w->at.cat->rtype[rtype].name,
                w->field);
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
    int isNamed = !w->client[0] || ebpfMonFlowIsNamed(client, w->client);
    ebpfMonFlowClient behind = { .pid = 0 };
    unsigned behinds;
    double badness;

    w->enabled += sub->isEnabled && !sub->monitor;
    w->monitors += sub->monitor != NULL;
    splitName(sub->pv, record, sizeof(record), field, sizeof(field));
    if (strcmp(field, w->field) != 0)
        return;
    behinds = ebpfMonSubscriptionsFindBehind(w->subs, client, sub->pv, isNamed ? "" : w->client, &behind);
    if (!isNamed && !behinds) {
        w->isRenamed |= ebpfMonSubscriptionsFindBehind(w->subs, client, "", w->client, &behind) &&
                        !ebpfMonSubscriptionsFindBehind(w->subs, client, sub->pv, "", &behind);
        return;
    }
    badness = badnessOf(client, sub) + 1e6 * behind.flow;
    if (!w->matching || badness > badnessOf(&w->worst, &w->sub) + 1e6 * w->behind.flow) {
        w->worst = *client;
        w->sub = *sub;
        w->behind = behind;
        w->behinds = behinds;
    }
    w->matching++;
}

/* Nonzero: a put to VAL does not post it, because it has the record process, which does (dbAccess.c, dbPut). */
static int isPostedByProcessing(const why *w)
{
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(w->at.cat, w->at.cat->rec[w->at.record].rtype, "VAL");
    struct layoutFldDes des;

    return f && w->at.mem && ebpfMonMemRead(w->at.mem, f->addr, &des, sizeof(des)) == 0 && (des.bits & 1);
}

/* Compares VAL with what the record posted last. Stops: it is within the deadband, or was written and the record has
 * not processed since, so it was not posted. Not known: the same, and perhaps the put posted it. Else fine, and "text"
 * is not set. */
static whyVerdict comparePosted(why *w, const char *last, const char *band, char *text, size_t size)
{
    double value = ebpfMonWhyReadNumber(&w->at, "VAL"), posted = ebpfMonWhyReadNumber(&w->at, last);
    double deadband = ebpfMonWhyReadNumber(&w->at, band);
    /* of a type that is not of Base MLST may be of another field, as RBV of a motor */
    int isOfBase = w->at.cat->rtype[w->at.cat->rec[w->at.record].rtype].stamps == EBPFMON_STAMPS_BASE;
    char scan[40];

    if (!isOfBase || strcmp(w->field, "VAL") != 0 || isnan(value) || isnan(posted) || isnan(deadband) ||
        value == posted || deadband < 0 || (fabs(value - posted) > deadband && !w->isStill))
        return whyFine;
    if (fabs(value - posted) > deadband) {
        snprintf(text, size, "VAL is %.15g, and the last value that its processing has posted is %.15g: it was written "
                 "and has not processed since (SCAN is %s)", value, posted,
                 ebpfMonWhyReadText(&w->at, "SCAN", scan, sizeof(scan)));
        return isPostedByProcessing(w) ? whyStops : whyUnknown;
    }
    snprintf(text, size, "VAL is %.15g and was not posted: it is within %s (%.15g) of the last posted value, %.15g",
             value, band, deadband, posted);
    return whyStops;
}

/* Who has subscribed to this record, and is not in the list of CA clients: it is in the list of the record
 * (dbCommon.mlis). QSRV has one subscription for values, and one for properties. */
static const char *describeOthers(why *w, char *text, size_t size)
{
    const ebpfMonRecord *r = &w->at.cat->rec[w->at.record];
    const ebpfMonField *f = ebpfMonCatalogueFieldNamed(w->at.cat, r->rtype, "MLIS");
    unsigned count[EBPFMON_FLOW_OWNERS], all, qsrv;
    struct layoutList list;

    text[0] = 0;
    all = ebpfMonSubscriptionsCountOthers(w->subs, w->at.iocId, w->at.record, count);
    qsrv = count[ebpfMonFlowQsrv1] + count[ebpfMonFlowQsrv2];
    if (!f || !w->at.mem || ebpfMonMemRead(w->at.mem, r->addr + f->offset, &list, sizeof(list)) ||
        list.count < 0 || !list.first != !list.count) {
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

/* There is a subscription of others, and no client of it is seen. NULL: there is none. */
static const char *describeHidden(why *w)
{
    unsigned count[EBPFMON_FLOW_OWNERS];

    ebpfMonSubscriptionsCountOthers(w->subs, w->at.iocId, w->at.record, count);
    return w->monitors ? NULL : count[ebpfMonFlowQsrv1] + count[ebpfMonFlowQsrv2] ? "a pvAccess client has, whose "
           "connection is older than the monitor" : count[ebpfMonFlowNobody] ? "others have, whose way is not known" :
           NULL;
}

/* A filter of a channel (dbChannel.h, chFilter), the plugin behind it (chfPlugin.c, chfFilter), and the data of "dbnd",
 * "sync" (filters/dbnd.c, sync.c) and of the state of that (dbState.c), as in 7.0.8. The text of the filter tells
 * whether they lie so. */
struct filter {
    struct layoutNode list, pre, post;
    uint64_t chan, plug, functions[4], puser;
};
struct filterPlugin {
    uint64_t plugin, found, puser;
};
struct filterDeadband {
    int32_t mode, pad;
    double  cval, hyst, last;
};
struct filterSync {
    int32_t  mode;
    char     state[20];
    uint64_t id;
};
struct filterState {
    struct layoutNode node;
    int32_t  status, pad;
    uint64_t name;
};
#define FILTERS_MAX 8
enum { syncWhile = 4, syncUnless = 5 };

/* One filter of the channel. */
typedef struct {
    char     name[16];
    const char *text;   /* from its name on in that of the channel */
    uint64_t data;
} channelFilter;

/* The number after the first colon that a number follows; NaN: there is none. */
static double findNumber(const char *text)
{
    char *end;

    for (const char *at = strchr(text, ':'); at; at = strchr(at + 1, ':')) {
        double number = strtod(at + 1, &end);

        if (end != at + 1)
            return number;
    }
    return NAN;
}

/* The filters of the channel, in the order in which an update passes them. Returns their number; 0: they lie
 * otherwise, or there are too many. */
static unsigned readFilters(const why *w, channelFilter list[FILTERS_MAX])
{
    ebpfMonMem *mem = w->at.mem;
    int hasChannels = mem && w->sub.at && w->at.cat->base->has.channels;
    uint64_t channel = hasChannels ? ebpfMonMemPtr(mem, w->sub.at + EBPFMON_EVENT_CHANNEL) : 0, at;
    struct {
        struct layoutDbChannel head;
        int64_t elements;
        int16_t size, type, pad[2];
        struct layoutList filters;
    } chan;
    struct filterPlugin plugin;
    struct filter filter;
    unsigned n = 0;

    if (!channel || ebpfMonMemRead(mem, channel, &chan, sizeof(chan)) || chan.filters.count > FILTERS_MAX ||
        chan.head.addr.precord != w->at.cat->rec[w->at.record].addr)
        return 0;
    for (at = chan.filters.first; at && (int)n < chan.filters.count; at = filter.list.next) {
        channelFilter *f = &list[n];

        if (ebpfMonMemRead(mem, at, &filter, sizeof(filter)) || filter.chan != channel ||
            ebpfMonMemStr(mem, ebpfMonMemPtr(mem, filter.plug + sizeof(struct layoutNode)), f->name,
                          sizeof(f->name)) < 0 ||
            ebpfMonMemRead(mem, filter.puser, &plugin, sizeof(plugin)) ||
            (f->text = strstr(strchr(w->sub.pv, '{'), f->name)) == NULL)
            return 0;
        f->data = plugin.puser;
        n++;
    }
    return (int)n == chan.filters.count ? n : 0;
}

/* "dbnd": VAL is within the deadband around the last value that it let through. */
static whyVerdict judgeDeadband(const why *w, const channelFilter *f, char *text, size_t size)
{
    struct filterDeadband band, again;
    double value;

    if (strcmp(w->field, "VAL") != 0 || ebpfMonMemRead(w->at.mem, f->data, &band, sizeof(band)) ||
        band.cval != findNumber(f->text))
        return whyUnknown;
    ebpfMonMemFlush(w->at.mem);
    value = ebpfMonWhyReadNumber(&w->at, "VAL");
    if (isnan(value) || ebpfMonMemRead(w->at.mem, f->data, &again, sizeof(again)) || again.last != band.last)
        return whyUnknown; /* the last: an update came in between */
    if (value == band.last || fabs(value - band.last) > band.hyst) {
        snprintf(text, size, "last let %.15g through", band.last);
        return whyFine;
    }
    snprintf(text, size, "lets a change of more than %.15g through, and VAL is %.15g and was not sent: the last value "
             "that it let through is %.15g", band.hyst, value, band.last);
    return whyStops;
}

/* "dec" lets one of n updates through (filters/decimate.c), and counts from 0 to n - 1. */
static whyVerdict judgeDecimation(const why *w, const channelFilter *f, char *text, size_t size)
{
    int32_t data[2], left;

    if (ebpfMonMemRead(w->at.mem, f->data, data, sizeof(data)) || data[0] != findNumber(f->text) || data[0] < 1 ||
        data[1] < 0 || data[1] >= data[0])
        return whyUnknown;
    left = (data[1] ? data[1] : data[0]) - 1;
    snprintf(text, size, "lets one of %d updates through; it has left out %d since the last one", (int)data[0],
             (int)left);
    return left ? whyStops : whyFine;
}

/* "sync" lets updates through while a state is set, or is not; in its other modes one when that changes. */
static whyVerdict judgeSync(const why *w, const channelFilter *f, char *text, size_t size)
{
    static const char *const modes[] = { "once before %s is set", "once when %s is set", "once before %s is cleared",
                                         "once when %s is cleared", "while %s is set", "unless %s is set" };
    struct filterSync sync;
    struct filterState state;
    char name[20], when[80];

    if (ebpfMonMemRead(w->at.mem, f->data, &sync, sizeof(sync)) || sync.mode < 0 || sync.mode > syncUnless ||
        ebpfMonMemRead(w->at.mem, sync.id, &state, sizeof(state)) ||
        ebpfMonMemStr(w->at.mem, state.name, name, sizeof(name)) < 0 ||
        strncmp(name, sync.state, sizeof(name)) != 0)
        return whyUnknown;
    snprintf(when, sizeof(when), modes[sync.mode], name);
    snprintf(text, size, "lets updates through %s, and it is %s", when, state.status ? "set" : "not set");
    return sync.mode >= syncWhile && (sync.mode == syncWhile) == (state.status != 0) ? whyFine : whyStops;
}

/* "utag" lets updates through by the record's UTAG, and the first one always (filters/utag.c). */
static whyVerdict judgeTag(const why *w, const channelFilter *f, char *text, size_t size)
{
    double tag = ebpfMonWhyReadNumber(&w->at, "UTAG"), number = findNumber(f->text);
    int32_t data[2]; /* mask, value */

    if (isnan(tag) || ebpfMonMemRead(w->at.mem, f->data, data, sizeof(data)) ||
        (number != data[0] && number != data[1]))
        return whyUnknown;
    snprintf(text, size, "lets updates through of which UTAG & %d is %d, and UTAG is %.0f", (int)data[0], (int)data[1],
             tag);
    return ((uint64_t)tag & (uint64_t)data[0]) == (uint64_t)data[1] ? whyFine : w->isStill ? whyUnknown : whyStops;
}

static whyVerdict judgeOneFilter(const why *w, const channelFilter *f, char *text, size_t size)
{
    if (strcmp(f->name, "dbnd") == 0)
        return judgeDeadband(w, f, text, size);
    if (strcmp(f->name, "dec") == 0)
        return judgeDecimation(w, f, text, size);
    if (strcmp(f->name, "sync") == 0)
        return judgeSync(w, f, text, size);
    if (strcmp(f->name, "utag") == 0)
        return judgeTag(w, f, text, size);
    snprintf(text, size, "leaves no update out");
    return strcmp(f->name, "ts") == 0 || strcmp(f->name, "arr") == 0 ? whyFine :
           whyUnknown;
}

/* The first filter that leaves something out; one that is not known hides those behind it. */
static void judgeFilters(why *w)
{
    whyVerdict verdict = whyUnknown;
    channelFilter list[FILTERS_MAX];
    char text[300] = "";
    unsigned n = readFilters(w, list), i = 0;

    while (i < n && (verdict = judgeOneFilter(w, &list[i], text, sizeof(text))) == whyFine)
        i++;
    if (verdict == whyUnknown)
        setStep(w, stepPost, whyUnknown, "what the filter of the channel leaves out: %s", strchr(w->sub.pv, '{'));
    else
        setStep(w, stepPost, verdict, "the filter %s of the channel, %s, %s", list[i < n ? i : n - 1].name,
                strchr(w->sub.pv, '{'), text);
}

/* An IOC without a free file accepts no connection, and goes on to answer searches. A process that was started with
 * addresses of its own perhaps asks somewhere else, where the monitor does not see it. */
static const char *describeWay(const why *w, char *text, size_t size)
{
    static const char *const names[] = { "EPICS_CA_ADDR_LIST", "EPICS_CA_NAME_SERVERS", "EPICS_PVA_ADDR_LIST",
                                         "EPICS_PVA_NAME_SERVERS" };
    int isNumber = !w->client[strspn(w->client, "0123456789")];
    ebpfMonProcStat stat;
    char value[60];

    text[0] = 0;
    for (size_t i = 0; isNumber && i < sizeof(names) / sizeof(names[0]); i++) {
        ebpfMonProcReadVariable((pid_t)strtol(w->client, NULL, 10), names[i], value, sizeof(value));
        if (value[0])
            ebpfMonTextAdd(text, size, "%s %s=%s", text[0] ? "," : "; it was started with", names[i], value);
    }
    if (ebpfMonProcStatGet(w->at.pid, &stat) == 0 && stat.fdLimit && stat.fds >= stat.fdLimit)
        ebpfMonTextAdd(text, size, "; the IOC has all of its %u files open (ulimit -n), so it accepts no connection",
                       stat.fdLimit);
    return text;
}

/* How many updates were posted to the subscription, and the last one of CA that went out: a lower bound. Packets are
 * read a second or more after they were sent. A server of pvAccess tells at most that it merged updates into one, not
 * how many. */
static const char *describePosted(const why *w, char *text, size_t size)
{
    const ebpfMonFlowChannel *c = w->matching == 1 ? w->sub.channel : NULL;
    const ebpfMonFlowMonitor *m = w->matching == 1 ? w->sub.monitor : NULL;
    uint64_t sent = m && !m->isUnsure ? m->updates : c && c->subscriptions == 1 ? c->sent.updates : 0;
    uint64_t merged = (m ? m->overruns : 0) + (w->sub.isCopied ? w->sub.merged : 0);
    char last[60], times[40] = "not known how many";
    int isNumber;
    double number;

    text[0] = 0;
    if (!sent)
        return text;
    if (m || w->sub.isCopied)
        snprintf(times, sizeof(times), "%s%llu", m ? "at least " : "", (unsigned long long)merged);
    snprintf(text, size, "; at least %llu updates were posted to it: %llu sent, %s merged, %u waiting",
             (unsigned long long)(sent + merged + w->sub.waiting), (unsigned long long)sent, times, w->sub.waiting);
    if (m || c->sent.baseType <= 0)
        return text;
    ebpfMonPacketTextFormatCa(c->sent.last, sizeof(c->sent.last), c->sent.baseType, 1, last, sizeof(last), &isNumber,
                              &number);
    ebpfMonTextAdd(text, size, "; the last one seen %s %s, %.0f s ago", w->sub.isCopied ? "is" : "begins with", last,
                   (double)(ebpfMonClockReal() - c->sent.lastAt) / 1e9);
    return text;
}

/* Longer than others: one line for each reason. */
static void judgePost(why *w)
{
    int isArchive = w->matching && !(w->sub.mask & DBE_VALUE);
    char text[200], others[100], asg[41], reason[300];
    whyVerdict posted = comparePosted(w, isArchive ? "ALST" : "MLST", isArchive ? "ADEL" : "MDEL", text, sizeof(text));

    if ((w->isUnconnected = w->known >= 0 && !w->matching && w->client[0] &&
         ebpfMonWhyFindUnconnected(w->pv, w->client, reason, sizeof(reason))[0]))
        setStep(w, stepPost, whyStops, "the client \"%.60s\" is not connected: %s", w->client, reason);
    else if (w->known >= 0 && !w->matching && w->client[0] && describeHidden(w))
        setStep(w, stepPost, whyUnknown, "no client \"%.60s\" has subscribed by Channel Access; %s", w->client,
                describeHidden(w));
    else if (w->known >= 0 && !w->matching && w->client[0] && w->isRenamed)
        setStep(w, stepPost, whyUnknown, "no client \"%.60s\" has subscribed to it by this name; a gateway has, "
                "perhaps for it", w->client);
    else if (w->known >= 0 && !w->matching && w->client[0])
        setStep(w, stepPost, whyStops, "no client \"%.60s\" has subscribed to it%s", w->client,
                describeWay(w, reason, sizeof(reason)));
    else if (w->matching && !(w->sub.mask & (DBE_VALUE | DBE_LOG)))
        setStep(w, stepPost, whyStops, "the client has not subscribed to values, only to%s%s",
                w->sub.mask & DBE_ALARM ? " alarms" : "", w->sub.mask & DBE_PROPERTY ? " properties" : "");
    else if (w->matching && !w->sub.isEnabled)
        setStep(w, stepPost, whyStops, "its subscription is switched off: the client may not read (ASG %s), or is new",
                ebpfMonWhyReadText(&w->at, "ASG", asg, sizeof(asg))[0] ? asg : "DEFAULT");
    else if (posted != whyFine)
        setStep(w, stepPost, posted, "%s", text);
    else if (w->matching && strchr(w->sub.pv, '{'))
        judgeFilters(w);
    else if (w->known < 0)
        setStep(w, stepPost, whyUnknown, "%s", w->unknown);
    else if (!w->matching)
        setStep(w, stepPost, whyUnknown, "no CA client has subscribed%s", describeOthers(w, others, sizeof(others)));
    else
        setStep(w, stepPost, whyFine, "%u subscription%s%s%s%s", w->matching, w->matching > 1 ? "s; the worst is of " :
                " of ", w->worst.name, describePosted(w, reason, sizeof(reason)),
                describeOthers(w, others, sizeof(others)));
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

/* Nonzero: the client is a process of this host, and a signal or a debugger has stopped it. */
static int isStopped(const ebpfMonFlowClient *c)
{
    return c->pid && ebpfMonProcStandsStill(c->pid, c->pid);
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
    else if (c->flow == ebpfMonFlowPaused && isStopped(c))
        setStep(w, stepQueue, whyHeldUp, "the client had asked for a pause; %s", text);
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
    else if (c->flow == ebpfMonFlowSlow && c->hasPeer)
        setStep(w, stepClient, whyStops, "the client reads too slowly: updates wait for it since %.0f s: %s); %u bytes "
                "have come to it and are not read", secondsSince(c->since), who, c->unread);
    else if (c->flow == ebpfMonFlowSlow)
        setStep(w, stepClient, whyStops, "the client, or the network to it, is too slow: updates wait for it since "
                "%.0f s: %s)", secondsSince(c->since), who);
    else if (c->flow == ebpfMonFlowNotRead)
        setStep(w, stepClient, whyStops, "the client does not read since %.0f s: %s); %u bytes have come to it%s%s",
                secondsSince(c->since), who, c->unread, c->hasPeer ? "" : " at least",
                isStopped(c) ? "; a signal or a debugger has stopped its process" : "");
    else if (isStopped(c))
        setStep(w, stepClient, whyStops, "the client does not read: %s); a signal or a debugger has stopped its "
                "process", who);
    else if (c->hasPeer && c->flow != ebpfMonFlowIocStopped)
        setStep(w, stepClient, whyFine, "it has read all that came: %s)", who);
    else
        setStep(w, stepClient, whyUnknown, "%s): whether it reads is seen on its own host", who);
}

/* The client behind a gateway: its connection to the gateway. What waits inside the gateway is not seen. */
static void judgeBehind(why *w)
{
    const ebpfMonFlowClient *c = &w->behind;
    char who[300], flow[64];

    snprintf(who, sizeof(who), "%s (%s", c->name, c->peer);
    if (c->pid)
        snprintf(who + strlen(who), sizeof(who) - strlen(who), ", %s, pid %d", c->command, (int)c->pid);
    ebpfMonFlowText(c, flow, sizeof(flow));
    if (w->behinds > 1)
        snprintf(who + strlen(who), sizeof(who) - strlen(who), "; the worst of %u", w->behinds);
    if (c->flow != ebpfMonFlowFine)
        setStep(w, stepBehind, whyStops, "%s, behind the gateway: %s)", flow, who);
    else if (isStopped(c))
        setStep(w, stepBehind, whyStops, "the client behind the gateway does not read: %s); a signal or a debugger has "
                "stopped its process", who);
    else
        setStep(w, stepBehind, c->hasPeer ? whyFine : whyUnknown, "%s: %s)",
                c->hasPeer ? "it has read all that the gateway has sent" : "whether it reads is seen on its own host",
                who);
}

/* --- the answer -------------------------------------------------------------------------------------------------- */

/* The other way: what the client, or anybody, has written last. If a client has written and not subscribed, the
 * question is of its write, and "no client has subscribed" is not the answer. */
static void judgeWrite(why *w)
{
    static const whyVerdict verdicts[] = { whyUnknown, whyFine, whyUnknown, whyHeldUp, whyStops };
    ebpfMonWriteStory story;
    char pv[EBPFMON_NAME_SIZE + 8];

    ebpfMonWhyWrite(&w->at, w->field, w->client, &story);
    if (story.fate == ebpfMonWriteStops && !w->client[0] && story.age > OLD_SECONDS)
        story.fate = ebpfMonWriteHolds; /* nobody has asked for it */
    snprintf(pv, sizeof(pv), "%s%s%.6s", ebpfMonCatalogueName(w->at.cat, w->at.record),
             strcmp(w->field, "VAL") == 0 ? "" : ".", strcmp(w->field, "VAL") == 0 ? "" : w->field);
    ebpfMonSubscriptionsAddFeedback(w->subs, w->at.ioc, pv, story.text, sizeof(story.text));
    setStep(w, stepWrite, verdicts[story.fate], "%s", story.text);
    if (w->client[0] && !w->matching && !w->isUnconnected && story.fate != ebpfMonWriteNotSeen &&
        w->step[stepPost].verdict == whyStops)
        setStep(w, stepPost, whyUnknown, "no client \"%.60s\" has subscribed to it; it has written", w->client);
}

static void followValue(why *w)
{
    judgeIoc(w);
    judgeRecord(w);
    w->known = ebpfMonSubscriptionsEach(w->subs, w->at.iocId, w->at.record, addSubscription, w, w->unknown,
                                        sizeof(w->unknown));
    judgePost(w);
    for (int i = stepQueue; i <= stepClient; i++)
        setStep(w, i, whyUnknown, "%s", w->known < 0 ? w->unknown : "no subscription");
    if (w->matching) {
        judgeQueue(w);
        judgeConnection(w);
        judgeClient(w);
    }
    if (w->behinds)
        judgeBehind(w);
    judgeWrite(w);
}

static void writeAnswer(const why *w, char *text, size_t size)
{
    static const char *const verdicts[] = { "not known", "fine", "held up", "here it stops" };
    static const char *const names[STEPS] = {
        "IOC", "record", "post", "queue", "send buffer", "network", "client", "behind", "write"
    };
    int first = 0;

    while (first < STEPS && w->step[first].verdict != whyStops)
        first++;
    if (first == STEPS && w->step[stepWrite].verdict == whyHeldUp) /* all other steps wait for a later one that stops */
        first = stepWrite;
    if (first < STEPS)
        ebpfMonTextAdd(text, size, "%s: %s\n", names[first], w->step[first].text);
    else
        ebpfMonTextAdd(text, size, "nothing stops, as far as is known\n");
    for (int i = 0; i < STEPS; i++)
        if (w->step[i].text[0])
            ebpfMonTextAdd(text, size, "  %-12s %-14s %s\n", names[i], verdicts[w->step[i].verdict], w->step[i].text);
    if (w->at.others)
        ebpfMonTextAdd(text, size, "%u more watched IOCs have such a record\n", w->at.others);
}

/* Nobody has it: whether an IOC had it that is gone, and who asks for it. */
static void tellAbsence(const why *w, const char *record, char *text, size_t size)
{
    char reason[300], gone[400];

    ebpfMonWhyFindUnconnected(w->pv, "", reason, sizeof(reason));
    if (ebpfMonSubscriptionsFindGone(w->subs, record, gone, sizeof(gone)) == 0)
        ebpfMonTextAdd(text, size, "IOC: %s\n", gone);
    else if (ebpfMonSubscriptionsFindServed(w->subs, w->pv, w->client, gone, sizeof(gone)))
        ebpfMonTextAdd(text, size, "no watched IOC has a record of %.100s: %s\n", w->pv, gone);
    else
        ebpfMonTextAdd(text, size, "no IOC that is watched has the record of %.100s%s%s\n", w->pv,
                       reason[0] ? ": " : "", reason);
}

void ebpfMonWhyAnswer(ebpfMonSubscriptions *subs, const char *pv, const char *client, char *text, size_t size)
{
    why *w = calloc(1, sizeof(*w));
    char record[EBPFMON_NAME_SIZE];

    text[0] = 0;
    if (!w || !ebpfMonSubscriptionsGetCore(subs)) {
        snprintf(text, size, "%s\n", w ? "the monitor does not run" : "out of memory");
        free(w);
        return;
    }
    w->subs = subs;
    w->pv = strncmp(pv, "ca://", 5) == 0 ? pv + 5 : strncmp(pv, "pva://", 6) == 0 ? pv + 6 : pv; /* as of Phoebus */
    pv = w->pv;
    w->client = client ? client : "";
    if (ebpfMonSubscriptionsLook(subs))
        ebpfMonTextAdd(text, size, "Reading the clients takes long. This is of the last complete list:\n");
    splitName(pv, record, sizeof(record), w->field, sizeof(w->field));
    if (ebpfMonWhyPlaceFind(ebpfMonSubscriptionsGetCore(subs)->targets, record, &w->at)) {
        tellAbsence(w, record, text, size);
    } else {
        followValue(w);
        writeAnswer(w, text, size);
        ebpfMonWhyPlaceClear(&w->at);
    }
    free(w);
}
