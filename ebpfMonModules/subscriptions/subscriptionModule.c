/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: its PVs, its commands, the device support of WHY_PV, its registration. */
/* These two choose the type-safe support tables of Base; they must stand before its headers. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dbAccess.h>
#include <dbDefs.h>
#include <devSup.h>
#include <epicsExport.h>
#include <lsoRecord.h>

#include "access/guard.h"
#include "record/shellCommand.h"
#include "subscriptions/subscriptions.h"
#include "subscriptions/why.h"

#define VALUE(member) offsetof(ebpfMonSubscriptionValues, member)
#define ROW(member)   offsetof(ebpfMonSubscriptionRow, member)
#define SUM(member)   offsetof(ebpfMonFlowSum, member)

/* One per process, because Base calls registrars, commands and device support without a context. */
static ebpfMonSubscriptions *subs;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonSubscriptionsGetValues(subs);
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonSubscriptionValues *v = ebpfMonSubscriptionsGetValues(subs);

    return index < v->rows ? &v->row[index] : NULL;
}

static const void *getWhy(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonSubscriptionValues *v = ebpfMonSubscriptionsGetValues(subs);

    return index < v->whySteps ? &v->why[index] : NULL;
}

static const void *getOfRecord(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonFlowSum *sum = &ebpfMonSubscriptionsGetValues(subs)->ofRecord[index];

    return sum->isKnown ? sum : NULL;
}

static const void *getOfIoc(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonSubscriptionValues *v = ebpfMonSubscriptionsGetValues(subs);

    return index < v->ofIocs ? &v->ofIoc[index] : NULL;
}

/* In the order of ebpfMonSubscriptions.substitutions. */
static ebpfMonPv pvs[] = {
    {"SUBSCRIPTION_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(subscriptions)},
    {"SUBSCRIPTION_STALLED_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(stalled), .cause = 1 + VALUE(stalledCause),
     .light = 1},
    {"SUBSCRIPTION_SILENCE_MAX", 0, getValues, ebpfMonCellDouble, VALUE(silence)},
    {"SUBSCRIPTION_MERGE_RATE", 0, getValues, ebpfMonCellDouble, VALUE(mergedRate)},
    {"SUBSCRIPTION_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"SUBSCRIPTION_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"WHY_TEXT", 0, getValues, ebpfMonCellLines, VALUE(whyText)},
    {"SUBSCRIPTION_PVS", 0, getRow, ebpfMonCellText, ROW(pv)},
    {"SUBSCRIPTION_STATES", 0, getRow, ebpfMonCellText, ROW(state)},
    {"SUBSCRIPTION_CLIENTS", 0, getRow, ebpfMonCellText, ROW(client)},
    {"SUBSCRIPTION_PROCESSES", 0, getRow, ebpfMonCellText, ROW(process)},
    {"SUBSCRIPTION_RATES", 0, getRow, ebpfMonCellDouble, ROW(rate), .gaps = 1},
    {"SUBSCRIPTION_MERGED_CNTS", 0, getRow, ebpfMonCellDouble, ROW(merged), .gaps = 1},
    {"SUBSCRIPTION_WAITING_CNTS", 0, getRow, ebpfMonCellUnsigned, ROW(waiting)},
    {"SUBSCRIPTION_UNSENTS", 0, getRow, ebpfMonCellCount, ROW(unsent)},
    {"SUBSCRIPTION_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"SUBSCRIPTION_TIMES", 0, getRow, ebpfMonCellText, ROW(last)},
    {"WHY_STEPS", 0, getWhy, ebpfMonCellText, offsetof(ebpfMonWhyRow, step)},
    {"WHY_VERDICTS", 0, getWhy, ebpfMonCellText, offsetof(ebpfMonWhyRow, verdict)},
    {"WHY_REASONS", 0, getWhy, ebpfMonCellText, offsetof(ebpfMonWhyRow, reason)},
    {"SUBSCRIPTION_CNT", 0, getOfRecord, ebpfMonCellUnsigned, SUM(subscriptions), .ofRecord = 1},
    {"SUBSCRIPTION_STALLED_CNT", 0, getOfRecord, ebpfMonCellUnsigned, SUM(stalled), .ofRecord = 1},
    {"SUBSCRIPTION_WAITING_CNT", 0, getOfRecord, ebpfMonCellUnsigned, SUM(waiting), .ofRecord = 1},
    {"SUBSCRIPTION_SILENCE_MAX", 0, getOfRecord, ebpfMonCellDouble, SUM(silence), .ofRecord = 1},
    {"SUBSCRIPTION_MERGE_RATE", 0, getOfRecord, ebpfMonCellDouble, SUM(mergedRate), .gaps = 1, .ofRecord = 1},
    {"IOC_SUBSCRIPTION_CNTS", 0, getOfIoc, ebpfMonCellUnsigned, SUM(subscriptions), .ofIoc = 1 + SUM(ioc)},
    {"IOC_STALLED_CNTS", 0, getOfIoc, ebpfMonCellUnsigned, SUM(stalled), .ofIoc = 1 + SUM(ioc)},
    {"IOC_WAITING_CNTS", 0, getOfIoc, ebpfMonCellUnsigned, SUM(waiting), .ofIoc = 1 + SUM(ioc)},
    {"IOC_SILENCE_MAXS", 0, getOfIoc, ebpfMonCellDouble, SUM(silence), .ofIoc = 1 + SUM(ioc)},
    {"IOC_MERGE_RATES", 0, getOfIoc, ebpfMonCellDouble, SUM(mergedRate), .gaps = 1, .ofIoc = 1 + SUM(ioc)},
};

/* --- metrics ----------------------------------------------------------------------------------------------------- */

#define WORST 10 /* subscriptions by name */

static void giveSums(const ebpfMonSubscriptionValues *v, ebpfMonModuleTakeMetric take, void *to)
{
#define KIND(member) offsetof(ebpfMonSubscriptionSum, member)
    static const struct {
        const char *name, *unit, *title;
        size_t offset;
    } gauges[] = {
        { "count", "{subscription}", "Subscriptions to an IOC or another server", KIND(subscriptions) },
        { "clients", "{client}", "Its clients", KIND(clients) },
        { "stalled", "{client}", "Clients that do not take what waits for them", KIND(stalled) },
        { "waiting", "{update}", "Updates that wait in the IOC", KIND(waiting) },
        { "merged", "{update}/s", "Updates that clients do not get", KIND(mergedRate) },
        { "unsent", "B", "Bytes that are not sent yet", KIND(unsent) },
    };
    ebpfMonModuleMetricRow row[NELEMENTS(v->sum)];

    for (unsigned i = 0; i < NELEMENTS(gauges); i++) {
        const ebpfMonModuleMetric metric = {
            .kind = "subscription", .name = gauges[i].name, .title = gauges[i].title, .unit = gauges[i].unit,
            .keyName = { "ioc", "kind" }, .keys = 2, .rows = v->sums, .row = row, .isGauge = 1,
        };

        for (unsigned k = 0; k < v->sums; k++) {
            row[k] = (ebpfMonModuleMetricRow){ .key = { v->sum[k].ioc, v->sum[k].kind } };
            memcpy(&row[k].max, (const char *)&v->sum[k] + gauges[i].offset, sizeof(row[k].max));
        }
        take(to, &metric);
    }
}

static void giveWorst(const ebpfMonSubscriptionValues *v, ebpfMonModuleTakeMetric take, void *to)
{
    ebpfMonModuleMetricRow row[WORST];
    ebpfMonModuleMetric metric = {
        .kind = "subscription", .name = "worst.waiting", .title = "The same of the worst subscriptions",
        .unit = "{update}", .keyName = { "ioc", "put", "client" }, .keys = 3, .rows = v->ill < WORST ? v->ill : WORST,
        .row = row, .isGauge = 1,
    };

    for (unsigned k = 0; k < metric.rows; k++)
        row[k] = (ebpfMonModuleMetricRow){ .key = { v->row[k].ioc, v->row[k].pv, v->row[k].client },
                                           .max = v->row[k].waiting };
    take(to, &metric);
    metric.name = "worst.unsent";
    metric.unit = "B";
    for (unsigned k = 0; k < metric.rows; k++)
        row[k].max = (double)v->row[k].unsent;
    take(to, &metric);
}

static void giveMetrics(void *arg, ebpfMonModuleTakeMetric take, void *to)
{
    ebpfMonSubscriptionValues *v = malloc(sizeof(*v));

    if (!v)
        return;
    ebpfMonModuleLock();
    *v = *ebpfMonSubscriptionsGetValues(subs);
    ebpfMonModuleUnlock();
    giveSums(v, take, to);
    giveWorst(v, take, to);
    free(v);
}

static ebpfMonModule module = {
    .name = "subscriptions", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = ebpfMonSubscriptionsBegin,
    .stop = ebpfMonSubscriptionsStop, .put = ebpfMonSubscriptionsAddPut, .metrics = giveMetrics,
    .iocs = ebpfMonSubscriptionsWake,
};

/* "PV client": the client is what follows the first blank. */
static void answerQuestion(ebpfMonSubscriptions *s, const char *question, char *text, size_t size)
{
    size_t n = strcspn(question, " ");
    char pv[200];

    snprintf(pv, sizeof(pv), "%.*s", (int)n, question);
    ebpfMonWhyAnswer(s, pv, question + n + strspn(question + n, " "), text, size);
}

static void askWhy(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    char question[200], text[4000];

    if (!ebpfMonShellHasText(args[0].sval)) {
        ebpfMonTextReportAdd(report, "ebpfMonWhy: give the name of a PV\n");
        ebpfMonShellSetStatus(-1);
    } else {
        snprintf(question, sizeof(question), "%s %s", args[0].sval, ebpfMonShellGetText(args[1].sval, ""));
        ebpfMonSubscriptionsAskAndWait(subs, question, text, sizeof(text));
        ebpfMonTextReportAdd(report, "%s", text);
    }
    ebpfMonTextReportPrint(report);
}

static void addRow(ebpfMonTextReport *report, const ebpfMonSubscriptionRow *row)
{
    ebpfMonTextReportAddCell(report, "%s", row->pv);
    ebpfMonTextReportAddCell(report, "%s", row->client);
    ebpfMonTextReportAddCell(report, "%s", row->process);
    ebpfMonTextReportAddCell(report, isnan(row->rate) ? "-" : "%.1f", row->rate);
    ebpfMonTextReportAddCell(report, isnan(row->merged) ? "-" : "%.0f", row->merged);
    ebpfMonTextReportAddCell(report, "%u", row->waiting);
    ebpfMonTextReportAddCell(report, "%llu", (unsigned long long)row->unsent);
    ebpfMonTextReportAddCell(report, "%s", row->state);
    ebpfMonTextReportAddCell(report, "%s", row->ioc);
}

static void listSubscriptions(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {
        {"PV", -24}, {"client", -20}, {"process", -16}, {"1/s", 7}, {"merged", 8}, {"waiting", 7}, {"unsent", 9},
        {"state", -34}, {"IOC", 0},
    };
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonSubscriptionValues *v = ebpfMonSubscriptionsGetValues(subs);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++)
        addRow(report, &v->row[i]);
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonWhy", askWhy, {{"PV", iocshArgString}, {"client", iocshArgString}},
     "Says where a value stops on its way from the record to a client: the first line. Then each step, and what\n"
     "became of the last write.\n"
     "The client is a part of user@host, of its address:port or of its command, or a process id; without it, the\n"
     "client that is worst off.\n"
     "Example: ebpfMonWhy RING:CURRENT archiver\n"},
    {"ebpfMonSubscriptions", listSubscriptions, EBPFMON_NO_ARGS,
     "Lists subscriptions of CA clients and of pvAccess clients, the worst first: updates per second, merged and\n"
     "waiting updates, bytes that could not be sent, and what is in the way (documentation/use/subscriptions.md).\n"}
};

/* --- WHY_PV ------------------------------------------------------------------------------------------------------ */

static long writeWhy(lsoRecord *prec)
{
    if (!ebpfMonGuardAccepts((dbCommon *)prec))
        return EBPFMON_GUARD_REFUSED;
    ebpfMonSubscriptionsAsk(subs, prec->val);
    return 0;
}

static lsodset devEbpfMonWhy = {{5, NULL, NULL, ebpfMonGuardAdd, NULL}, writeWhy};
epicsExportAddress(dset, devEbpfMonWhy);

static void ebpfMonSubscriptionsRegistrar(void)
{
    subs = ebpfMonSubscriptionsNew(&module, answerQuestion);
    ebpfMonShellAddModule(&module, subs, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonSubscriptionsRegistrar);
