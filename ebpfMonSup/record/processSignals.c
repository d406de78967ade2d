/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that the process of a monitor gets from outside: SIGTERM ends it, SIGHUP reads the rules again. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <epicsExit.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/serviceManager.h"
#include "ebpfMon.h"
#include "rules/rulesFile.h"

static int signalPipe[2] = { -1, -1 }; /* a signal handler has no argument; written before the first one comes */

static void onSignal(int number)
{
    int before = errno;
    char byte = (char)number;

    if (write(signalPipe[1], &byte, 1) < 0) /* allowed in a handler (signal-safety(7)); full: many wait already */
        errno = before;
}

/* sd_notify(3): RELOADING=1 with the time, and READY=1 when it is done. */
static void reload(void)
{
    char text[512];
    int refused;

    ebpfMonServiceTell("RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(ebpfMonClockMonotonic() / 1000));
    refused = ebpfMonRulesFileLoad(NULL, text, sizeof(text));
    if (refused)
        errlogSevPrintf(errlogMajor, "ebpfMon: rules: %s\n", text);
    else
        errlogPrintf("ebpfMon: rules: %s\n", text);
    ebpfMonServiceTell("READY=1");
}

static void serveSignals(void *arg)
{
    char number;

    (void)arg;
    for (;;) {
        ssize_t n = read(signalPipe[0], &number, 1);

        if (n < 0 && errno == EINTR)
            continue;
        if (n != 1)
            return;
        if (number == SIGHUP)
            reload();
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
    /* A terminal sends SIGHUP when it goes, and then the monitor is to end. */
    if (!isatty(STDIN_FILENO))
        sigaction(SIGHUP, &action, NULL);
    action.sa_flags |= SA_RESETHAND; /* a second one ends it at once */
    sigaction(SIGTERM, &action, NULL);
    return 0;
}
