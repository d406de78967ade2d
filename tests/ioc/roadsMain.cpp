/* SPDX-License-Identifier: BSD-3-Clause */
/* roadsIoc DBD ACF MACROS DB...: loads the databases, starts the IOC, and runs the shell until stdin ends. If the
 * environment variable ROADS_WAIT is set, it waits for a line on stdin before it starts the IOC. */
#include <stdio.h>
#include <stdlib.h>

#include <asDbLib.h>
#include <dbAccess.h>
#include <epicsExit.h>
#include <iocInit.h>
#include <iocsh.h>

extern "C" int roadsIoc_registerRecordDeviceDriver(struct dbBase *pdbbase);

int main(int argc, char *argv[])
{
    if (argc < 5) {
        fprintf(stderr, "usage: roadsIoc DBD ACF MACROS DB...\n");
        return 2;
    }
    if (dbLoadDatabase(argv[1], NULL, NULL))
        return 1;
    roadsIoc_registerRecordDeviceDriver(pdbbase);
    asSetFilename(argv[2]);
    for (int i = 4; i < argc; i++)
        if (dbLoadRecords(argv[i], argv[3]))
            return 1;
    if (getenv("ROADS_WAIT"))
        for (int c = 0; c != '\n' && c != EOF; c = getchar())
            ;
    if (iocInit())
        return 1;
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
