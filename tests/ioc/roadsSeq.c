/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread with its own CA context, as a sequencer program has one. libca reaches records of the same IOC without a
 * network connection (dbCAC). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cadef.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <errlog.h>
#include <iocsh.h>

#include "roadsThread.h"

#define NAME_SIZE 80
#define CHANNELS  32

static void threadMain(void *arg)
{
    roadsThread *thread = arg;

    for (;;) {
        epicsEventMustWait(thread->go);
        thread->status = thread->job(thread->pv, thread->value, thread->how);
        epicsEventMustTrigger(thread->done);
    }
}

void roadsOrder(roadsThread *thread, const char *pv, const char *value, const char *how)
{
    if (!thread->go) {
        thread->go = epicsEventMustCreate(epicsEventEmpty);
        thread->done = epicsEventMustCreate(epicsEventEmpty);
        epicsThreadMustCreate(thread->name, epicsThreadPriorityMedium,
                              epicsThreadGetStackSize(epicsThreadStackBig), threadMain, thread);
    }
    thread->pv = pv ? pv : "";
    thread->value = value ? value : "";
    thread->how = how ? how : "";
    epicsEventMustTrigger(thread->go);
    epicsEventMustWait(thread->done);
    if (thread->status)
        errlogSevPrintf(errlogMajor, "%s: cannot put \"%s\" to %s: status %ld\n", thread->name, thread->value,
                        thread->pv, thread->status);
    iocshSetError(thread->status ? -1 : 0);
}

static long putByCa(const char *pv, const char *value, const char *how)
{
    static struct { char name[NAME_SIZE]; chid id; } channel[CHANNELS];
    char text[MAX_STRING_SIZE], *end;
    double number = strtod(value, &end);
    int i, status;

    if (!ca_current_context())
        ca_context_create(ca_enable_preemptive_callback);
    for (i = 0; i < CHANNELS && channel[i].name[0] && strcmp(channel[i].name, pv) != 0; i++)
        ;
    if (i == CHANNELS || strlen(pv) >= NAME_SIZE)
        return ECA_ALLOCMEM;
    if (!channel[i].name[0]) { /* a free place */
        status = ca_create_channel(pv, NULL, NULL, 0, &channel[i].id);
        if (status != ECA_NORMAL)
            return status;
        status = ca_pend_io(5.0);
        if (status != ECA_NORMAL) {
            ca_clear_channel(channel[i].id);
            return status;
        }
        strcpy(channel[i].name, pv);
    }
    if (*value && !*end) {
        status = ca_put(DBR_DOUBLE, channel[i].id, &number);
    } else {
        snprintf(text, sizeof(text), "%s", value);
        status = ca_put(DBR_STRING, channel[i].id, text);
    }
    ca_flush_io();
    return status == ECA_NORMAL ? 0 : status;
}

static roadsThread seq = {"seqDemo", putByCa};
static const iocshArg pvArg = {"PV", iocshArgString}, valueArg = {"value", iocshArgString};
static const iocshArg *const args[] = {&pvArg, &valueArg};
static const iocshFuncDef seqDef = {"roadsSeq", 2, args,
    "Puts a value by Channel Access, in the thread seqDemo.\n"};

static void seqCall(const iocshArgBuf *a)
{
    roadsOrder(&seq, a[0].sval, a[1].sval, "");
}

static void roadsSeqRegistrar(void)
{
    iocshRegister(&seqDef, seqCall);
}
epicsExportRegistrar(roadsSeqRegistrar);
