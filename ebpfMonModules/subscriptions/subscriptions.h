/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the watched IOCs send to their CA clients, and servers of this host to clients of pvAccess, and what is in the
 * way: the thread of the module. Each second it reads the counters of each subscription (eventLists.h), what packets
 * have shown of pvAccess (flowPva.h), and what the kernel knows of the connections, less often in a silence, or if it
 * would take more than EBPFMON_SUBSCRIPTIONS_COST of a core. The lists themselves come from the look at the clients
 * (clients/clientTable.h). Nothing is attached.
 */
#ifndef EBPFMON_SUBSCRIPTIONS_H
#define EBPFMON_SUBSCRIPTIONS_H

#include "ebpfMonModule.h"
#include "subscriptions/flowIoc.h"
#include "subscriptions/flowPva.h"
#include "subscriptions/flowSums.h"
#include "clients/clients.h"

#define EBPFMON_SUBSCRIPTIONS_COST 0.005 /* cores */
#define EBPFMON_SUBSCRIPTION_ROWS 200
#define EBPFMON_SUBSCRIPTION_IOCS 256

typedef struct {
    char     pv[EBPFMON_NAME_SIZE]; /* as the client wrote it */
    long     record;        /* index in the catalogue */
    uint64_t at;            /* its evSubscrip, of CA; else 0 */
    uint8_t  mask;          /* DBE_… */
    int      isCopied, isEnabled;
    uint32_t waiting;
    uint64_t merged;        /* since it began; only of those that are copied */
    double   mergedRate;    /* of the last look, 1/s */
    double   rate;          /* updates sent per second, of all subscriptions of its channel; NaN: not known */
    const ebpfMonFlowMonitor *monitor; /* of pvAccess; NULL: of CA. Until the next look */
    int      hasQueue;      /* what the IOC has for it is known; always of CA */
    const ebpfMonFlowChannel *channel; /* of CA; else NULL */
} ebpfMonFlowSubscription;

/* A row of the table SUBSCRIPTIONS. */
typedef struct {
    char     ioc[EBPFMON_IOCNAME_SIZE];
    char     pv[EBPFMON_NAME_SIZE];
    char     client[128];
    char     process[80];
    char     state[64];
    char     last[16];      /* when the last update was sent; "": not known */
    double   rate, merged;  /* NaN: not known */
    unsigned waiting;
    uint64_t unsent;        /* bytes that the server could not send yet */
} ebpfMonSubscriptionRow;

/* What the clients of one server have in all, for metrics: of Channel Access, of pvAccess, or other IOCs (their links).
 * The servers after the first EBPFMON_SUBSCRIPTION_SUMS are together "others". */
typedef struct {
    char     ioc[EBPFMON_IOCNAME_SIZE];
    const char *kind;       /* "CA", "PVA", "IOC" */
    double   clients, stalled, subscriptions, waiting, unsent, mergedRate;
} ebpfMonSubscriptionSum;

#define EBPFMON_SUBSCRIPTION_SUMS 60
#define EBPFMON_WHY_STEPS 8

/* A step of an answer. */
typedef struct {
    char step[16], verdict[16], reason[200];
} ebpfMonWhyRow;

typedef struct {
    unsigned iocs, clients, subscriptions;
    unsigned stalled;       /* clients that take nothing though something waits for them */
    double   silence;       /* s: for how long at most … */
    char     stalledCause[240]; /* … and who that is; "" */
    double   mergedRate;    /* updates merged per second, of all */
    double   cost;          /* percent of one core */
    char     state[200];
    unsigned rows;
    ebpfMonSubscriptionRow row[EBPFMON_SUBSCRIPTION_ROWS];
    unsigned ill;           /* so many of the first rows are not ok */
    unsigned sums;
    ebpfMonSubscriptionSum sum[EBPFMON_SUBSCRIPTION_SUMS + 3];
    ebpfMonFlowSum ofRecord[EBPFMON_FLOW_SUMS]; /* in the order of the watched records */
    unsigned ofIocs;
    ebpfMonFlowSum ofIoc[EBPFMON_SUBSCRIPTION_IOCS]; /* ioc "": it cannot be read now */
    char     whyText[4000];
    unsigned whySteps;
    ebpfMonWhyRow why[EBPFMON_WHY_STEPS]; /* the same as a table */
} ebpfMonSubscriptionValues;

typedef struct ebpfMonSubscriptions ebpfMonSubscriptions;

/* Answers a question of WHY_PV in several lines. The thread calls it without a lock. */
typedef void (*ebpfMonSubscriptionsAnswer)(ebpfMonSubscriptions *subs, const char *question, char *text, size_t size);

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
ebpfMonSubscriptions *ebpfMonSubscriptionsNew(const ebpfMonModule *module, ebpfMonSubscriptionsAnswer answer);
int ebpfMonSubscriptionsBegin(void *subs, const ebpfMonModuleCore *core); /* as ebpfMonModule.start, */
int ebpfMonSubscriptionsStop(void *subs, double seconds);                                /* stop, */
void ebpfMonSubscriptionsWake(void *subs); /* iocs: one that came may be gone before the next look */
void ebpfMonSubscriptionsAddPut(void *subs, const ebpfMonModulePut *put);                /* and put */

/* The published values. Under the lock of ebpfMonModuleLock. */
const ebpfMonSubscriptionValues *ebpfMonSubscriptionsGetValues(const ebpfMonSubscriptions *subs);

/* A question for WHY_TEXT ("PV [client]"): the thread answers it soon. Any thread. */
void ebpfMonSubscriptionsAsk(ebpfMonSubscriptions *subs, const char *question);

/* Waits for the answer, some 15 s at most. Any thread but that of the module. */
void ebpfMonSubscriptionsAskAndWait(ebpfMonSubscriptions *subs, const char *question, char *text, size_t size);

/* --- for the answer (why.h), which the thread of the module gives --- */

const ebpfMonModuleCore *ebpfMonSubscriptionsGetCore(const ebpfMonSubscriptions *subs); /* NULL: it does not run */

/* Reads the lists of clients and the counters now; waits at most 5 s. 0, or -1: what follows may be older. */
int ebpfMonSubscriptionsLook(ebpfMonSubscriptions *subs);

/* Calls "each" for each subscription to this record of the IOC with this number. Returns their number; -1: the
 * subscriptions of this IOC are not known, and "why" says why. */
typedef void (*ebpfMonSubscriptionsEachFn)(void *arg, const ebpfMonFlowClient *client,
                                           const ebpfMonFlowSubscription *subscription);
long ebpfMonSubscriptionsEach(ebpfMonSubscriptions *subs, uint32_t iocId, long record, ebpfMonSubscriptionsEachFn each,
                              void *arg, char *why, size_t size);

/* How many clients behind this gateway have subscribed to this PV ("": any; "name": that it names; "": all), as far as
 * packets have shown them. *worst: the one with most in its way. */
unsigned ebpfMonSubscriptionsFindBehind(const ebpfMonSubscriptions *subs, const ebpfMonFlowClient *gateway,
                                        const char *pv, const char *name, ebpfMonFlowClient *worst);

/* As ebpfMonFeedbackAddText. */
void ebpfMonSubscriptionsAddFeedback(ebpfMonSubscriptions *subs, const char *ioc, const char *pv, char *text,
                                     size_t size);

/* Who serves a PV of pvAccess that is no record, as a group of QSRV, and what is in the way of its worst client, or of
 * this one. 0: no monitor of it is seen. */
int ebpfMonSubscriptionsFindServed(const ebpfMonSubscriptions *subs, const char *pv, const char *client, char *text,
                                   size_t size);

/* As ebpfMonGoneIocsFind. */
int ebpfMonSubscriptionsFindGone(const ebpfMonSubscriptions *subs, const char *record, char *text, size_t size);

/* How many subscriptions to this record belong to no CA client, by their owners. Returns the sum. */
unsigned ebpfMonSubscriptionsCountOthers(ebpfMonSubscriptions *subs, uint32_t iocId, long record,
                                         unsigned count[EBPFMON_FLOW_OWNERS]);

#endif
