/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsAtomic.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/logOps.h"

static const struct {
    const char *name, *number;
} modes[] = {{"off", "-1"}, {"changes", "0"}, {"all", "2"}, {"burst", "1"}};

int ebpfMonLogModeParse(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (epicsStrCaseCmp(name, modes[i].name) == 0 || epicsStrCaseCmp(name, modes[i].number) == 0)
            return (int)i;
    return -1;
}

const char *ebpfMonLogModeName(ebpfMonLogMode mode)
{
    return (unsigned)mode < sizeof(modes) / sizeof(modes[0]) ? modes[mode].name : "?";
}

static long absent(void)
{
    errlogSevPrintf(errlogMajor, "ebpfMon: the logs are not linked in, or not registered. Call "
                    "ebpfMon_registerRecordDeviceDriver first.\n");
    return -1;
}

static long absentJson(const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    (void)file, (void)maxMB, (void)hours, (void)keep, (void)mode;
    return absent();
}

static long absentCaPutLog(const char *target, int json, ebpfMonLogMode mode, const char *prefix)
{
    (void)target, (void)json, (void)mode, (void)prefix;
    return absent();
}

static long absentMetadata(const char *key, const char *value)
{
    (void)key, (void)value;
    return absent();
}

static void absentResetLost(void)
{
}

static void absentReport(int level)
{
    (void)level;
    absent();
}

static long absentOtlp(const char *url, const char *signals, const char *headers)
{
    (void)url, (void)signals, (void)headers;
    return absent();
}

static long absentZipkin(const char *url)
{
    (void)url;
    return absent();
}

static const ebpfMonLogOps absentOps = {
    absentJson, absentCaPutLog, absentMetadata, absent, absentResetLost, absentReport, absentOtlp, absentZipkin,
    absentReport
};

static EpicsAtomicPtrT registered; /* written once, when the functions are registered; any thread reads it */

const ebpfMonLogOps *ebpfMonLogOpsGet(void)
{
    const ebpfMonLogOps *ops = epicsAtomicGetPtrT(&registered);

    return ops ? ops : &absentOps;
}

void ebpfMonLogOpsRegister(const ebpfMonLogOps *ops)
{
    epicsAtomicSetPtrT(&registered, (EpicsAtomicPtrT)ops);
}
