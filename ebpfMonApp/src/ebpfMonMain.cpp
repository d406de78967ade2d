/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitor IOC: an ordinary IOC shell. All it does is in the support library and in st.cmd. */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <ebpfMon.h>
#include <epicsExit.h>
#include <epicsThread.h>
#include <epicsVersion.h>
#include <errlog.h>
#include <iocInit.h>
#include <iocsh.h>

#include "consoleClient.h"

/* iocInit.c: whether iocInit keeps all memory of the process resident (mlockall), stacks and tables in full. That is
 * for IOCs that control something. "var dbThreadRealtimeLock 1" in st.cmd has it so. */
extern "C" int dbThreadRealtimeLock;

/* Bytes of a message, and of all that wait to be printed. The default is 256, which cuts a message with a state or a
 * cross-check in it. */
#define MESSAGE_SIZE 1024
#define QUEUE_SIZE   (16 * MESSAGE_SIZE)

/* Bytes of a CA message: more than any of our arrays has. Without a limit the CA server keeps as much memory as a
 * client announces, up to 4 GB (casExpandBuffer, rsrv/caservertask.c). What the environment says wins. */
#define ARRAY_BYTES "1000000"

/* Bytes from which malloc gives memory back to the system as soon as it is freed. Without a fixed number, glibc raises
 * it to the size of what was freed (mallopt(3)): after the kernel's BTF (6 MB) was read once, arrays of records that
 * were freed would stay, a third of all that the monitor allocates. */
#define GIVE_BACK (128 * 1024)

#define CONSOLE "/run/ebpfmon/console"

static const char usage[] =
    "Usage: ebpfMon [-S] [SCRIPT]\n"
    "       ebpfMon --check | --console | --version | --help\n"
    "\n"
    "The monitor IOC of ebpfMon: it watches the other IOCs of this host. SCRIPT has commands of the IOC shell "
    "(st.cmd).\n"
    "\n"
    "  -S, --no-shell  after SCRIPT do not read commands from stdin; SIGTERM ends it. For a service.\n"
    "  -c, --check     say what this kernel and this user allow, and what to do for more. 0: everything that is "
    "needed\n"
    "  -C, --console   be the console of the running service (/run/ebpfmon/console, or another socket: "
    "--console=PATH)\n"
    "  -V, --version   print the version\n"
    "  -h, --help      print this\n"
    "\n"
    "Signals: SIGTERM ends it, SIGHUP reads the rules file again (unless stdin is a terminal).\n";

/* Before the constructors of the libraries: in one of them Base finds out whether it may set real-time priorities
 * (once(), osdThread.c), and keeps the answer. If it may first, and later may not, the heap is damaged when threads end
 * (seen with 7.0.8.1). */
__attribute__((section(".preinit_array"), used)) static void (*const giveUpRealTime)(void) = ebpfMonRealTimeGiveUp;

static int runScript(const char *script, bool isService)
{
    mallopt(M_MMAP_THRESHOLD, GIVE_BACK);
    errlogInit2(QUEUE_SIZE, MESSAGE_SIZE); /* before anything prints: the first call counts */
    dbThreadRealtimeLock = 0;
    setenv("EPICS_CA_AUTO_ARRAY_BYTES", "NO", 0);
    setenv("EPICS_CA_MAX_ARRAY_BYTES", ARRAY_BYTES, 0);
    ebpfMonSignalsHandle();
    if (isService) {
        setenv("EPICS_IOCSH_HISTFILE", "", 0); /* else a file in the working folder gets all of SCRIPT */
        setvbuf(stdout, NULL, _IOLBF, 0); /* else the journal has errors, of stderr, before the commands that made
                                           * them */
    }
    if (script) {
        /* it cannot be read, or has "on error break"; iocInit has failed */
        if (iocsh(script) || (isService && getIocState() != iocRunning))
            return 1; /* for the service manager, which tries again or says so, and as softIoc */
        epicsThreadSleep(.2); /* as every IOC main: let the start-up messages out before the prompt */
    }
    while (isService)
        pause();
    iocsh(NULL);
    return 0;
}

int main(int argc, char *argv[])
{
    static const struct option options[] = {
        {"no-shell", no_argument, NULL, 'S'}, {"check", no_argument, NULL, 'c'},
        {"console", optional_argument, NULL, 'C'}, {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}
    };
    bool isService = false;
    int option;

    while ((option = getopt_long(argc, argv, "+ScC::Vh", options, NULL)) != -1) {
        switch (option) {
        case 'S': isService = true; break;
        case 'c': return ebpfMonHostCheck(stdout) ? 1 : 0;
        case 'C': return runConsoleClient(optarg ? optarg : CONSOLE);
        case 'V': printf("ebpfMon %s, %s\n", ebpfMonVersionGet(), EPICS_VERSION_FULL); return 0;
        case 'h': fputs(usage, stdout); return 0;
        default:  fputs(usage, stderr); return 2;
        }
    }
    epicsExit(runScript(argv[optind], isService));
    return 0;
}
