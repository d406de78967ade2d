/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clock for the time stamps of the IOC, as an event receiver has one. Base asks it before the clock of the host, and
 * never lets time stamps go back (epicsGeneralTime.c).
 */
#include <epicsAtomic.h>
#include <epicsExport.h>
#include <epicsGeneralTime.h>
#include <epicsTime.h>
#include <generalTimeSup.h>
#include <iocsh.h>

#define PRIORITY 10 /* the clock of the host has 999 */

static int later; /* s */

static int getTime(epicsTimeStamp *now)
{
    struct timespec host;

    clock_gettime(CLOCK_REALTIME, &host);
    host.tv_sec += epicsAtomicGetIntT(&later);
    epicsTimeFromTimespec(now, &host);
    return 0;
}

static const iocshArg laterArg = {"seconds", iocshArgInt};
static const iocshArg *const args[] = {&laterArg};
static const iocshFuncDef clockDef = {"roadsClock", 1, args,
    "Time stamps come from a clock that is so many seconds later than that of the host.\n"};

static void clockCall(const iocshArgBuf *a)
{
    static int registered;

    epicsAtomicSetIntT(&later, a[0].ival);
    if (!registered)
        generalTimeRegisterCurrentProvider("roads", PRIORITY, getTime);
    registered = 1;
}

static void roadsClockRegistrar(void)
{
    iocshRegister(&clockDef, clockCall);
}
epicsExportRegistrar(roadsClockRegistrar);
