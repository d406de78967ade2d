/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include <epicsExit.h>
#include <epicsThread.h>
#include <iocsh.h>

#include "ebpfMon.h"

int main(int argc, char *argv[])
{
    ebpfMonSignalsHandle();
    if (argc >= 2) {
        iocsh(argv[1]);
        epicsThreadSleep(0.2);
    }
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
