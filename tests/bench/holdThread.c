/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into softIoc for hold.py: a SCHED_FIFO thread that does one thing each time when it is told, and says how
 * long that took. Both sides share the file HOLD_FILE: struct order.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define USE_TYPED_RSET
#include <dbAccess.h>
#include <dbLock.h>
#include <dbScan.h>

extern volatile int interruptAccept; /* dbScan.c: iocInit is over */

struct order {
    volatile uint64_t wanted; /* number of the order; hold.py counts it up */
    volatile uint64_t done;   /* the last order that was done */
    volatile uint64_t what;   /* an index of "root": process it; PUT: put to H:PUT; EVENT: scan the list of event "h" */
    volatile uint64_t ns;     /* that the last order took */
};

enum { ROOTS = 3, PUT = ROOTS, EVENT };

static uint64_t readClock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void obey(const struct order *o, DBADDR *root, DBADDR *put, EVENTPVT event)
{
    double value = o->wanted;

    if (o->what == PUT) {
        dbPutField(put, DBR_DOUBLE, &value, 1);
    } else if (o->what == EVENT) {
        postEvent(event); /* the list itself is scanned by a thread for callbacks */
    } else {
        dbScanLock(root[o->what].precord);
        dbProcess(root[o->what].precord);
        dbScanUnlock(root[o->what].precord);
    }
}

static void *run(void *arg)
{
    struct sched_param p = { .sched_priority = 80 };
    struct order *o = arg;
    DBADDR root[ROOTS], put;
    EVENTPVT event;

    while (!interruptAccept)
        usleep(100000);
    for (int i = 0; i < ROOTS; i++) {
        char name[20];

        snprintf(name, sizeof(name), "H:ROOT%d", i);
        if (dbNameToAddr(name, &root[i]))
            return NULL;
    }
    if (dbNameToAddr("H:PUT", &put))
        return NULL;
    event = eventNameToHandle("h");
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    for (uint64_t last = 0;;) {
        struct timespec pause = { 0, 50000 };
        uint64_t begin;

        if (o->wanted == last) {
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* a real thread sleeps, and its caches get cold */
            continue;
        }
        last = o->wanted;
        begin = readClock();
        obey(o, root, &put, event);
        o->ns = readClock() - begin;
        o->done = last;
    }
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("HOLD_FILE");
    int fd = name ? open(name, O_RDWR) : -1;
    pthread_t id;
    void *o;

    if (fd < 0)
        return;
    o = mmap(NULL, sizeof(struct order), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (o != MAP_FAILED)
        pthread_create(&id, NULL, run, o);
}
