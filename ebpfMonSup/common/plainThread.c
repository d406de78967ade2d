/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "common/plainThread.h"

int ebpfMonPlainThreadStart(void *(*run)(void *arg), void *arg, size_t stackBytes)
{
    sigset_t blocked, before;
    pthread_attr_t attr;
    pthread_t thread;
    int err;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stackBytes);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &(struct sched_param){ .sched_priority = 0 });
    sigfillset(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    err = pthread_create(&thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return err;
}
