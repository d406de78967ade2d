/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitor IOC: an ordinary IOC shell. All it does is in the support library and in st.cmd. */
#include <epicsExit.h>
#include <epicsThread.h>
#include <iocsh.h>

int main(int argc, char *argv[])
{
    if (argc >= 2) {
        iocsh(argv[1]);
        epicsThreadSleep(.2); /* as every IOC main: let the start-up messages out before the prompt */
    }
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
