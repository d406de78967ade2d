/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

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

static long refuseCommand(void)
{
    errlogSevPrintf(errlogMajor, "ebpfMon: the logs are not linked in, or not registered. Call "
                    "ebpfMon_registerRecordDeviceDriver first.\n");
    return -1;
}

static long absentRotate(void *arg)
{
    (void)arg;
    return refuseCommand();
}

static long absentJson(void *arg, const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode)
{
    (void)arg, (void)file, (void)maxMB, (void)hours, (void)keep, (void)mode;
    return refuseCommand();
}

static long absentCaPutLog(void *arg, const char *target, int json, ebpfMonLogMode mode, const char *prefix)
{
    (void)arg;
    (void)target, (void)json, (void)mode, (void)prefix;
    return refuseCommand();
}

static long absentMetadata(void *arg, const char *key, const char *value)
{
    (void)arg;
    (void)key, (void)value;
    return refuseCommand();
}

static void absentResetLost(void *arg)
{
    (void)arg;
}

static void absentReport(void *arg, int level)
{
    (void)arg;
    (void)level;
    refuseCommand();
}

static long absentOtlp(void *arg, const char *url, const char *signals, const char *headers)
{
    (void)arg;
    (void)url, (void)signals, (void)headers;
    return refuseCommand();
}

static long absentZipkin(void *arg, const char *url)
{
    (void)arg;
    (void)url;
    return refuseCommand();
}

const ebpfMonLogOps ebpfMonLogOpsAbsent = {NULL,         absentJson,      absentCaPutLog, absentMetadata,
                                           absentRotate, absentResetLost, absentReport,   absentOtlp,
                                           absentZipkin, absentReport};
