/* SPDX-License-Identifier: BSD-3-Clause */
/* An IOC with the record types and drivers of several modules. Its argument is a start-up script; the command
 * registerAll registers what its .dbd file names. */
#include <stdio.h>

#include <dbAccess.h>
#include <dbStaticLib.h>
#include <epicsExit.h>
#include <iocsh.h>

extern "C" int registerAllRecordDeviceDrivers(struct dbBase *);
extern "C" void iocshRegisterCommon(void);

static const iocshFuncDef registerAll = {"registerAll", 0, NULL};

static void callRegisterAll(const iocshArgBuf *)
{
    if (registerAllRecordDeviceDrivers(pdbbase))
        printf("registerAll failed\n");
}

int main(int argc, char *argv[])
{
    iocshRegisterCommon();
    iocshRegister(&registerAll, callRegisterAll);
    if (argc > 1)
        iocsh(argv[1]);
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
