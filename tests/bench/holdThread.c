/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into softIoc: a SCHED_FIFO thread that does one thing each time when it is told, and says how long that
 * took. For hold.py: both sides share the file HOLD_FILE, struct order. For tests/kernels/hold.sh: with HOLD_TIMES, it
 * does each thing so many times when the file /tmp/goN is there, and writes quantiles to the file /tmp/doneN, N from 0
 * on: a line for each thing, in ns.
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
    volatile uint64_t least;  /* ns; an order that is done earlier spins until then */
};

enum { ROOTS = 3, PUT = ROOTS, EVENT, THINGS };

static const double quantiles[] = { 0.5, 0.99, 0.9999 }; /* as in hold.py */
static unsigned times;                                   /* HOLD_TIMES; 0: struct order tells what to do */

struct targets {
    DBADDR root[ROOTS], put;
    EVENTPVT event;
};

static uint64_t readClock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void sleepShort(void)
{
    struct timespec pause = { 0, 50000 };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* a real thread sleeps, and its caches get cold */
}

/* Returns the ns that it took. */
static uint64_t doThing(struct targets *t, unsigned what, uint64_t number)
{
    uint64_t begin = readClock();
    double value = number;

    if (what == PUT) {
        dbPutField(&t->put, DBR_DOUBLE, &value, 1);
    } else if (what == EVENT) {
        postEvent(t->event); /* the list itself is scanned by a thread for callbacks */
    } else {
        dbScanLock(t->root[what].precord);
        dbProcess(t->root[what].precord);
        dbScanUnlock(t->root[what].precord);
    }
    return readClock() - begin;
}

static void followOrders(struct targets *t, struct order *o)
{
    for (uint64_t begin, last = 0;;) {
        if (o->wanted == last) {
            sleepShort();
            continue;
        }
        last = o->wanted;
        begin = readClock();
        o->ns = doThing(t, o->what, last);
        if (o->least) {
            while (readClock() - begin < o->least)
                ;
            o->ns = readClock() - begin;
        }
        o->done = last;
    }
}

static int compareNs(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void goThroughRounds(struct targets *t)
{
    uint64_t *ns = calloc(times, sizeof(*ns));
    char name[40];
    FILE *f;

    for (int round = 0;; round++) {
        snprintf(name, sizeof(name), "/tmp/go%d", round);
        while (access(name, F_OK))
            usleep(200000);
        f = fopen("/tmp/doneNext", "w");
        for (unsigned what = 0; what < THINGS; what++) {
            for (unsigned i = 0; i < times; i++) {
                sleepShort();
                ns[i] = doThing(t, what, i);
            }
            qsort(ns, times, sizeof(*ns), compareNs);
            for (unsigned q = 0; q < sizeof(quantiles) / sizeof(*quantiles); q++)
                fprintf(f, "%llu ", (unsigned long long)ns[(unsigned)(times * quantiles[q])]);
            fprintf(f, "%llu\n", (unsigned long long)ns[times - 1]);
        }
        fclose(f);
        snprintf(name, sizeof(name), "/tmp/done%d", round);
        rename("/tmp/doneNext", name);
    }
}

static void *run(void *arg)
{
    struct sched_param p = { .sched_priority = 80 };
    struct targets t;

    while (!interruptAccept)
        usleep(100000);
    for (int i = 0; i < ROOTS; i++) {
        char name[20];

        snprintf(name, sizeof(name), "H:ROOT%d", i);
        if (dbNameToAddr(name, &t.root[i]))
            return NULL;
    }
    if (dbNameToAddr("H:PUT", &t.put))
        return NULL;
    t.event = eventNameToHandle("h");
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
    if (times)
        goThroughRounds(&t);
    else
        followOrders(&t, arg);
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("HOLD_FILE"), *text = getenv("HOLD_TIMES");
    int fd = name ? open(name, O_RDWR) : -1;
    pthread_t id;
    void *o;

    times = text ? atoi(text) : 0;
    if (times)
        pthread_create(&id, NULL, run, NULL);
    if (fd < 0)
        return;
    o = mmap(NULL, sizeof(struct order), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (o != MAP_FAILED)
        pthread_create(&id, NULL, run, o);
}
