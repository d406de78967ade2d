/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latencyIoc DBD MACROS DB...: loads the databases, starts the IOC, and runs the shell until stdin ends. Environment:
 * CALLBACK_THREADS  the number of callback threads of each priority
 */
#include <stdio.h>
#include <stdlib.h>

#include <callback.h>
#include <dbAccess.h>
#include <epicsExit.h>
#include <iocInit.h>
#include <iocsh.h>

extern "C" int latencyIoc_registerRecordDeviceDriver(struct dbBase *pdbbase);

int main(int argc, char *argv[])
{
    if (argc < 4) {
        fprintf(stderr, "usage: latencyIoc DBD MACROS DB...\n");
        return 2;
    }
    if (dbLoadDatabase(argv[1], NULL, NULL))
        return 1;
    latencyIoc_registerRecordDeviceDriver(pdbbase);
    if (getenv("CALLBACK_THREADS"))
        callbackParallelThreads(atoi(getenv("CALLBACK_THREADS")), "");
    for (int i = 3; i < argc; i++)
        if (dbLoadRecords(argv[i], argv[2]))
            return 1;
    if (iocInit())
        return 1;
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
