/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of OTLP with a collector (otlpServer.h): an ebpfMonOtlp, and its published values. */
#ifndef EBPFMON_OTLPCLIENT_H
#define EBPFMON_OTLPCLIENT_H

#include <inttypes.h>
#include <time.h>

#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "otlp/otlp.h"
#include "model/published.h"
#include "otlpServer.h"
#include "otlpTest.h"

#define DEADLINE 20.0 /* s */

static ebpfMonOtlp *otlp;
static ebpfMonOtlpConf conf;
static char why[256];

typedef struct { uint64_t sent, lost; ebpfMonLogState state; char msg[256]; double queue; } shown;

static inline shown readShown(void)
{
    const ebpfMonOtlpValues *v = ebpfMonOtlpGetValues(otlp);
    shown s;

    ebpfMonModuleLock();
    s = (shown){ v->sent, v->lost, v->state, "", v->queue };
    strcpy(s.msg, v->message);
    ebpfMonModuleUnlock();
    return s;
}

#define WAIT(condition) do { \
        double by_ = ebpfMonClockSeconds() + DEADLINE; \
        while (!(condition) && ebpfMonClockSeconds() < by_) \
            epicsThreadSleep(0.01); \
        testOk(condition, "%s", #condition); \
    } while (0)

static shown before;

/* Each test has its own, which keeps what commands want also after a stop. */
static inline void renewOtlp(void)
{
    static const ebpfMonModule module;

    ebpfMonOtlpFree(otlp);
    otlp = ebpfMonOtlpNew(&module);
}

static inline void begin(manner m, const char *which)
{
    char base[40];

    setManner(m);
    renewOtlp();
    before = readShown();
    snprintf(base, sizeof(base), "http://127.0.0.1:%d", server.port);
    if (ebpfMonOtlpConfSetCommand(&conf, base, which, "X-Lab=B2", why, sizeof(why)))
        testAbort("%s", why);
}

static inline void put(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        ebpfMonPut p = otlpPut(i);

        ebpfMonOtlpAddPut(otlp, &p);
    }
}

static inline void stopOtlp(double seconds)
{
    ebpfMonOtlpStop(otlp, seconds);
    ebpfMonOtlpWaitStopped(otlp);
}

/* Ends the ebpfMonOtlp, and checks the time that this takes, and that all items were accepted or are counted as
 * lost. */
static inline void finish(double within, unsigned produced)
{
    double start = ebpfMonClockSeconds();
    uint64_t sent, lost;

    stopOtlp(within);
    testOk(ebpfMonClockSeconds() - start < within + 1, "ended after %.2f s", ebpfMonClockSeconds() - start);
    sent = readShown().sent - before.sent;
    lost = readShown().lost - before.lost;
    testOk(sent + lost == produced, "%" PRIu64 " accepted + %" PRIu64 " lost == %u", sent, lost, produced);
    testOk1(readShown().state == ebpfMonLogNone);
}

static inline void beginOtlpTest(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    clearEnvironment();
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* the proxy must not be used for loopback */
    renewOtlp();
    startServer();
    eltc(0);
}

static inline void endOtlpTest(void)
{
    ebpfMonOtlpFree(otlp);
    stopServer();
}

#endif
