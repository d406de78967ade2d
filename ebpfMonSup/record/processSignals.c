/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles the signals of the monitor's process: SIGTERM ends it, SIGHUP reads the rules file again. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <epicsExit.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/serviceManager.h"
#include "ebpfMon.h"
#include "model/ops.h"
#include "rules/rules.h"

static int signalPipe[2] = { -1, -1 }; /* static because a signal handler has no context. Set before the first signal */

static void onSignal(int number)
{
    int before = errno;
    char byte = (char)number;

    if (write(signalPipe[1], &byte, 1) < 0) /* write may be used in a handler (signal-safety(7)); a full pipe is no
                                             * harm */
        errno = before;
}

/* Reads the rules file again. sd_notify(3) needs RELOADING=1 with the time before, and READY=1 afterwards. */
static void reloadRules(void)
{
    char text[512];
    int refused;

    ebpfMonServiceTell("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(ebpfMonClockMonotonic() / 1000));
    refused = ebpfMonRulesFileLoad(ebpfMonOpsGet()->rules, NULL, text, sizeof(text));
    if (refused)
        errlogSevPrintf(errlogMajor, "ebpfMon: rules: %s\n", text);
    else
        errlogPrintf("ebpfMon: rules: %s\n", text);
    ebpfMonServiceTell("READY=1");
}

static void serveSignals(void *arg)
{
    char number;

    for (;;) {
        ssize_t n = read(signalPipe[0], &number, 1);

        if (n < 0 && errno == EINTR)
            continue;
        if (n != 1)
            return;
        if (number == SIGHUP)
            reloadRules();
        else
            epicsExit(0);
    }
}

int ebpfMonSignalsHandle(void)
{
    struct sigaction action = { .sa_handler = onSignal, .sa_flags = SA_RESTART };

    if (signalPipe[0] >= 0)
        return 0;
    if (pipe2(signalPipe, O_CLOEXEC))
        return -1;
    fcntl(signalPipe[1], F_SETFL, O_NONBLOCK); /* a handler must not wait */
    if (!epicsThreadCreate("ebpfMonSignal", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackBig),
                           serveSignals, NULL))
        return -1;
    /* A terminal sends SIGHUP when it is closed. Then the monitor must end, as it does without a handler. */
    if (!isatty(STDIN_FILENO))
        sigaction(SIGHUP, &action, NULL);
    action.sa_flags |= SA_RESETHAND; /* a second SIGTERM ends the process at once */
    sigaction(SIGTERM, &action, NULL);
    return 0;
}
