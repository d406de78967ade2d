/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <alarm.h>
#include <cadef.h>
#include <epicsStdio.h>

#include "topPvs.h"

/* Called by libca for the file that becomes readable when libca wants topPvsPoll to be called
 * (ca_client_context::callbackProcessingInitiateNotify). */
static void onFile(void *arg, int file, int isOpen)
{
    ((topPvs *)arg)->file = isOpen ? file : -1;
}

static int isArray(const topPv *pv)
{
    return pv->kind == topNumbers || pv->kind == topTexts;
}

static void noteChange(topPv *pv)
{
    pv->changes++;
    pv->pvs->changes++;
}

static void setText(topPv *pv, const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (!copy)
        return; /* no memory: the old text stays */
    memcpy(copy, text, length);
    copy[length] = 0;
    free(pv->text);
    pv->text = copy;
}

/* struct dbr_time_string, dbr_time_char and dbr_time_double begin with the same members. */
static void takeValue(topPv *pv, const struct event_handler_args *args)
{
    const struct dbr_time_string *head = args->dbr;

    if (pv->kind == topNumber)
        pv->number = ((const struct dbr_time_double *)args->dbr)->value;
    else if (pv->kind == topText)
        setText(pv, head->value, strnlen(head->value, sizeof(head->value)));
    else {
        const char *text = (const char *)dbr_value_ptr(args->dbr, DBR_TIME_CHAR);

        setText(pv, text, strnlen(text, (size_t)args->count));
    }
    pv->severity = head->severity;
    pv->time = head->stamp;
    pv->isKnown = 1;
}

static void onValue(struct event_handler_args args)
{
    topPv *pv = args.usr;

    if (args.status != ECA_NORMAL || pv->pvs->isPaused)
        return;
    if (!isArray(pv) && args.dbr)
        takeValue(pv, &args);
    noteChange(pv);
}

static chtype getType(const topPv *pv)
{
    return pv->kind == topNumber ? DBR_TIME_DOUBLE : pv->kind == topLongText ? DBR_TIME_CHAR : DBR_TIME_STRING;
}

/* The number of elements for a subscription; 0: all. For an array one is enough, because it only tells that it
 * changed. */
static unsigned long getCount(const topPv *pv)
{
    return pv->kind == topLongText ? 0 : 1;
}

static void onConnection(struct connection_handler_args args)
{
    topPv *pv = ca_puser(args.chid);

    pv->isConnected = args.op == CA_OP_CONN_UP;
    if (pv->isConnected && !pv->event)
        ca_create_subscription(getType(pv), getCount(pv), pv->channel, DBE_VALUE | DBE_ALARM, onValue, pv, &pv->event);
    noteChange(pv);
}

/* Drops the messages of libca, because they would destroy the page on the screen. isConnected tells what is
 * important. */
static int dropMessage(const char *format, va_list args)
{
    return 0;
}

static void onException(struct exception_handler_args args)
{
}

int topPvsOpen(topPvs *pvs, const char *prefix)
{
    pvs->file = -1;
    if (strlen(prefix) >= sizeof(pvs->prefix)) {
        fprintf(stderr, "ebpfMonTop: the prefix has more than %u characters\n", (unsigned)sizeof(pvs->prefix) - 1);
        return -1;
    }
    strcpy(pvs->prefix, prefix);
    if (ca_context_create(ca_disable_preemptive_callback) != ECA_NORMAL) {
        fprintf(stderr, "ebpfMonTop: libca does not start: free memory on this host, then try again\n");
        return -1;
    }
    ca_replace_printf_handler(dropMessage);
    ca_add_exception_event(onException, NULL);
    ca_add_fd_registration(onFile, pvs);
    topPvsPoll(pvs);
    return 0;
}

void topPvsClose(topPvs *pvs)
{
    ca_context_destroy(); /* closes the channels, too */
    for (unsigned i = 0; i < pvs->count; i++)
        free(pvs->pv[i].text);
}

topPv *topPvsGet(topPvs *pvs, const char *name, topKind kind)
{
    char full[sizeof(pvs->prefix) + 64];
    topPv *pv;

    for (unsigned i = 0; i < pvs->count; i++)
        if (strcmp(pvs->pv[i].name, name) == 0 && pvs->pv[i].kind == kind)
            return &pvs->pv[i];
    if (pvs->count == TOP_PVS_MAX) {
        fprintf(stderr, "ebpfMonTop: more than %d PVs\n", TOP_PVS_MAX);
        return NULL;
    }
    pv = &pvs->pv[pvs->count++];
    pv->pvs = pvs;
    pv->name = name;
    pv->kind = kind;
    setText(pv, "", 0);
    epicsSnprintf(full, sizeof(full), "%s%s", pvs->prefix, name);
    if (!pv->text || ca_create_channel(full, onConnection, pv, CA_PRIORITY_DEFAULT, &pv->channel) != ECA_NORMAL) {
        fprintf(stderr, "ebpfMonTop: %s cannot be the name of a PV\n", full);
        return NULL;
    }
    return pv;
}

void topPvsPoll(topPvs *pvs)
{
    ca_poll();
}

void topPvsPause(topPvs *pvs, int pause)
{
    pvs->isPaused = pause;
    if (pause)
        return;
    for (unsigned i = 0; i < pvs->count; i++) {
        topPv *pv = &pvs->pv[i];

        if (isArray(pv))
            noteChange(pv);
        else if (pv->isConnected)
            ca_array_get_callback(getType(pv), getCount(pv), pv->channel, onValue, pv);
    }
}

int topPvPutText(topPv *pv, const char *text)
{
    if (!pv->isConnected || !ca_write_access(pv->channel))
        return -1;
    return ca_array_put(DBR_CHAR, strlen(text) + 1, pv->channel, text) == ECA_NORMAL ? 0 : -1;
}

int topPvIsValid(const topPv *pv)
{
    return pv->isKnown && pv->severity != INVALID_ALARM;
}

unsigned topPvsCountMissing(const topPvs *pvs)
{
    unsigned missing = 0;

    for (unsigned i = 0; i < pvs->count; i++)
        if (!isArray(&pvs->pv[i]) && !pvs->pv[i].isKnown)
            missing++;
    return missing;
}
