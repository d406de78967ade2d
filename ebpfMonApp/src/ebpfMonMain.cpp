/* SPDX-License-Identifier: BSD-3-Clause */
/* The monitor IOC: an ordinary IOC shell. All it does is in the support library and in st.cmd. */
#include <semaphore.h>
#include <signal.h>

#include <epicsExit.h>
#include <epicsThread.h>
#include <errlog.h>
#include <iocsh.h>

static sem_t asked; /* to end; a signal handler has no argument */

static void onSignal(int)
{
    sem_post(&asked); /* allowed in a handler (signal-safety(7)) */
}

static void endWhenAsked(void *)
{
    while (sem_wait(&asked))
        ;
    epicsExit(0);
}

/*
 * SIGTERM (systemctl stop, kill) ends the monitor as "exit" does. Without this it would end at once: puts that wait for
 * the logs would be lost, and if a thread is killed while it removes a probe, the trap stays in the IOC
 * (documentation/internals.md, "Ends that are not orderly").
 */
static void endOnTerm()
{
    struct sigaction action = {};

    sem_init(&asked, 0, 0);
    action.sa_handler = onSignal;
    action.sa_flags = SA_RESTART | SA_RESETHAND; /* a second one ends it at once */
    if (epicsThreadCreate("ebpfMonTerm", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackMedium),
                          endWhenAsked, NULL))
        sigaction(SIGTERM, &action, NULL);
}

/* iocInit.c: whether iocInit keeps all memory of the process resident (mlockall), stacks and tables in full. That is for IOCs
 * that control something. "var dbThreadRealtimeLock 1" in st.cmd has it so. */
extern "C" int dbThreadRealtimeLock;

/* Bytes of a message, and of all that wait to be printed. The default is 256, which cuts a message with a state or a
 * cross-check in it. */
#define MESSAGE_SIZE 1024
#define QUEUE_SIZE   (16 * MESSAGE_SIZE)

int main(int argc, char *argv[])
{
    errlogInit2(QUEUE_SIZE, MESSAGE_SIZE); /* before anything prints: the first call counts */
    dbThreadRealtimeLock = 0;
    endOnTerm();
    if (argc >= 2) {
        iocsh(argv[1]);
        epicsThreadSleep(.2); /* as every IOC main: let the start-up messages out before the prompt */
    }
    iocsh(NULL);
    epicsExit(0);
    return 0;
}
