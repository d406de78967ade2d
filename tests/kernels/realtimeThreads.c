/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into softIoc: threads that process records and put, and preempt each other on one CPU. Thread 0 is always
 * busy, with the usual policy; each of the others has a higher SCHED_FIFO priority than the one before, and wakes after
 * pauses of 0.1 to 1.6 ms. So each of them interrupts the others in the middle of anything. Round N begins when the
 * file /tmp/goN is there, lasts for REALTIME_SECONDS, and ends with the file /tmp/doneN, which has the number of puts,
 * and of calls of clock_nanosleep. The records themselves (realtimeThread.db) count how often they process: that is the
 * truth.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define USE_TYPED_RSET
#include <dbAccess.h>
#include <dbLock.h>

#define THREADS 5
#define PRIORITY 40 /* of thread 0 if it had one; scan threads of Base have 60 and more, of 100 */

extern volatile int interruptAccept; /* dbScan.c: iocInit is over */

struct worker {
    pthread_t id;
    int number;
    unsigned long done;
};

static double seconds; /* of a round; set before the threads begin */

static double readClock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void becomeRealTime(int number)
{
    struct sched_param p = { .sched_priority = PRIORITY + number };

    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))
        fprintf(stderr, "realtimeThreads: no SCHED_FIFO\n");
}

static void *run(void *arg)
{
    struct worker *w = arg;
    unsigned seed = 7919 * w->number + 1;
    char name[40];
    DBADDR count, set;
    double end;

    snprintf(name, sizeof(name), "rt%d", w->number);
    prctl(PR_SET_NAME, name);
    if (w->number)
        becomeRealTime(w->number);
    snprintf(name, sizeof(name), "R:T%d:CNT", w->number);
    if (dbNameToAddr(name, &count))
        return NULL;
    snprintf(name, sizeof(name), "R:T%d:SET", w->number);
    if (dbNameToAddr(name, &set))
        return NULL;
    for (end = readClock() + seconds; readClock() < end; w->done++) {
        double value = w->done;
        struct timespec pause = { 0, 100000 + rand_r(&seed) % 1500000 };

        if (w->number)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        dbScanLock(count.precord);
        dbProcess(count.precord);
        dbScanUnlock(count.precord);
        dbPutField(&set, DBR_DOUBLE, &value, 1);
    }
    return NULL;
}

static void waitForFile(const char *name)
{
    while (access(name, F_OK))
        usleep(200000);
}

static void *runRounds(void *arg)
{
    while (!interruptAccept)
        usleep(100000);
    for (int round = 0;; round++) {
        struct worker worker[THREADS];
        unsigned long puts = 0, sleeps = 0;
        char name[40];
        FILE *f;

        snprintf(name, sizeof(name), "/tmp/go%d", round);
        waitForFile(name);
        memset(worker, 0, sizeof(worker));
        for (int i = 0; i < THREADS; i++) {
            worker[i].number = i;
            pthread_create(&worker[i].id, NULL, run, &worker[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(worker[i].id, NULL);
            puts += worker[i].done;
            sleeps += i ? worker[i].done : 0;
        }
        snprintf(name, sizeof(name), "/tmp/done%d", round);
        f = fopen(name, "w");
        fprintf(f, "%lu %lu\n", puts, sleeps);
        fclose(f);
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("REALTIME_SECONDS");
    pthread_t id;

    if (!text)
        return;
    seconds = atof(text);
    pthread_create(&id, NULL, runRounds, NULL);
}
