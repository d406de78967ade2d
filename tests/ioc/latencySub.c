/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routines of aSub records, for the tests:
 * - Routines that take a known time. Input A is the time asked for (µs). Output VALA is the time that it took by our
 *   own clock (µs). A test compares with VALA, so it stays right on a busy host.
 * - Routines that hand the record named by input A over to another thread.
 * - For queries: a function whose calls, arguments and results are known, and USDT probes.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <aSubRecord.h>
#include <alarm.h>
#include <callback.h>
#include <cantProceed.h>
#include <dbAccess.h>
#include <dbDefs.h>
#include <dbScan.h>
#include <epicsEvent.h>
#include <epicsExport.h>
#include <epicsMutex.h>
#include <epicsRingPointer.h>
#include <epicsThread.h>
#include <recGbl.h>
#include <registryFunction.h>

#include "usdt.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Keeps the CPU busy. The caller holds the lock set. */
static long spinFor(aSubRecord *prec)
{
    double begin = now(), end = begin + *(double *)prec->a;

    while (now() < end)
        ;
    *(double *)prec->vala = now() - begin;
    return 0;
}

/* Sleeps. The caller holds the lock set. */
static long sleepFor(aSubRecord *prec)
{
    double begin = now();

    epicsThreadSleep(*(double *)prec->a / 1e6);
    *(double *)prec->vala = now() - begin;
    return 0;
}

/* Sleeps A times for 2 ms. Before that it begins a sleep of 1 ns: this has passed when the thread wants to leave the
 * CPU, so it is woken while it runs, and goes on. */
static long napShortly(aSubRecord *prec)
{
    const struct timespec least = { .tv_nsec = 1 };

    prctl(PR_SET_TIMERSLACK, 1);
    for (double i = 0; i < *(double *)prec->a; i++) {
        nanosleep(&least, NULL);
        epicsThreadSleep(0.002);
    }
    prctl(PR_SET_TIMERSLACK, 0); /* as before */
    return 0;
}

/* Maps A bytes, writes to each page (4096 bytes) of them, and unmaps them. */
static long mapMemory(aSubRecord *prec)
{
    size_t size = (size_t)*(double *)prec->a;
    char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return -1;
    for (size_t i = 0; i < size; i += 4096)
        *(volatile char *)(p + i) = 1;
    munmap(p, size);
    return 0;
}

/* A thread that holds a mutex for a time, whenever it is told to. */
typedef struct {
    epicsMutexId gate;
    epicsEventId begin, holds;
    double us;
} Holder;

static void holdGate(void *arg)
{
    Holder *h = arg;

    for (;;) {
        epicsEventMustWait(h->begin);
        epicsMutexMustLock(h->gate);
        epicsEventMustTrigger(h->holds);
        epicsThreadSleep(h->us / 1e6);
        epicsMutexUnlock(h->gate);
    }
}

/* Waits for this mutex. VALA is the sum of all waits. */
static long waitForGate(aSubRecord *prec)
{
    Holder *h = prec->dpvt;
    double begin;

    if (!h) {
        h = callocMustSucceed(1, sizeof(*h), "waitForGate");
        h->gate = epicsMutexMustCreate();
        h->begin = epicsEventMustCreate(epicsEventEmpty);
        h->holds = epicsEventMustCreate(epicsEventEmpty);
        prec->dpvt = h;
        epicsThreadMustCreate("holder", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackSmall),
                              holdGate, h);
    }
    h->us = *(double *)prec->a;
    epicsEventMustTrigger(h->begin);
    epicsEventMustWait(h->holds);
    begin = now();
    epicsMutexMustLock(h->gate);
    *(double *)prec->vala += now() - begin;
    epicsMutexUnlock(h->gate);
    return 0;
}

/* An asynchronous record, as with a slow device: it begins, releases the lock set, and a callback completes it. If
 * input B is not 0, it gets a timeout alarm, as if the device had not answered. A timer of EPICS may expire up to 5 ms
 * early. */
typedef struct {
    epicsCallback callback;
    double begin;
} Pending;

static long completeAfter(aSubRecord *prec)
{
    Pending *pending = prec->dpvt;

    if (prec->pact) {
        *(double *)prec->vala = now() - pending->begin;
        if (*(double *)prec->b != 0)
            recGblSetSevr(prec, TIMEOUT_ALARM, INVALID_ALARM);
        return 0;
    }
    if (!pending) {
        pending = callocMustSucceed(1, sizeof(*pending), "completeAfter");
        prec->dpvt = pending;
    }
    pending->begin = now();
    prec->pact = TRUE;
    callbackRequestProcessCallbackDelayed(&pending->callback, prec->prio, prec, *(double *)prec->a / 1e6);
    return 0;
}

/* As output records do: sets the time stamp and waits, begins an asynchronous completion (completeAfter), and gets a
 * second time stamp when it completes. */
static long stampFirst(aSubRecord *prec)
{
    if (!prec->pact) {
        recGblGetTimeStamp((dbCommon *)prec);
        epicsThreadSleep(*(double *)prec->a / 1e6);
    }
    return completeAfter(prec);
}

static dbCommon *named(const aSubRecord *prec)
{
    DBADDR addr;

    return dbNameToAddr(prec->a, &addr) ? NULL : addr.precord;
}

static long processByCallback(aSubRecord *prec)
{
    dbCommon *other = named(prec);

    if (!other)
        return -1;
    if (!prec->dpvt)
        prec->dpvt = callocMustSucceed(1, sizeof(epicsCallback), "processByCallback");
    callbackRequestProcessCallback(prec->dpvt, prec->prio, other);
    return 0;
}

/* Puts B into VAL of the named record, which then processes: as a routine does that does not use its links. */
static long putInside(aSubRecord *prec)
{
    DBADDR addr;

    return dbNameToAddr(prec->a, &addr) || dbPutField(&addr, DBR_DOUBLE, prec->b, 1) ? -1 : 0;
}

/* A callback that sleeps and holds no lock set. */
static void idle(epicsCallback *callback)
{
    double begin = now();
    aSubRecord *prec;

    callbackGetUser(prec, callback);
    epicsThreadSleep(*(double *)prec->a / 1e6);
    *(double *)prec->vala = now() - begin;
}

static long sleepInCallback(aSubRecord *prec)
{
    if (!prec->dpvt) {
        epicsCallback *callback = callocMustSucceed(1, sizeof(*callback), "sleepInCallback");

        callbackSetCallback(idle, callback);
        callbackSetPriority(prec->prio, callback);
        callbackSetUser(prec, callback);
        prec->dpvt = callback;
    }
    return callbackRequest(prec->dpvt);
}

static long processOnce(aSubRecord *prec)
{
    dbCommon *other = named(prec);

    return other && !scanOnce(other) ? 0 : -1;
}

/* The named record's time stamp is an hour later, as if it had processed before the clock was set back by an hour. */
static long stampLater(aSubRecord *prec)
{
    dbCommon *other = named(prec);

    if (!other)
        return -1;
    dbScanLock(other);
    other->time.secPastEpoch += 3600;
    dbScanUnlock(other);
    return 0;
}

/* Holds the lock set of the named record for 30 ms, as an atomic put to a group does. */
static long holdMany(aSubRecord *prec)
{
    dbCommon *other = named(prec);
    dbLocker *locker = other ? dbLockerAlloc(&other, 1, 0) : NULL;

    if (!locker)
        return -1;
    dbScanLockMany(locker);
    epicsThreadSleep(0.03);
    dbScanUnlockMany(locker);
    dbLockerFree(locker);
    return 0;
}

/* Pushes an entry to a ring buffer of its own, and pops it. Rings of callbacks use the same functions of Base. */
static long popOwn(aSubRecord *prec)
{
    static epicsCallback callback;

    if (!prec->dpvt)
        prec->dpvt = epicsRingPointerCreate(4);
    return epicsRingPointerPush(prec->dpvt, &callback) && epicsRingPointerPop(prec->dpvt) == &callback ? 0 : -1;
}

/* What the argument "known" of knownCall points to. */
typedef struct {
    int  pad;
    int  small;
    struct { long pad, number; } *inner;
    char text[24];
    double real; /* -1, -0.75, … 1.25 */
    float  single; /* the same value */
    long   round;  /* the number of the processing, from 1 on */
} Known;

long knownCall(int number, const char *name, const Known *known, dbCommon *prec);

/* noipa: the compiler must not make a copy of it with the arguments of one caller. */
__attribute__((noipa)) long knownCall(int number, const char *name, const Known *known, dbCommon *prec)
{
    __asm__ volatile("" : : "r"(name), "r"(known), "r"(prec) : "memory"); /* so the compiler passes all arguments */
    return number % 3 - 1;
}

extern const int probeLimit;
const int probeLimit = 1000;
static const struct { long pad, number; } table[10] = { { 0, 0 }, { 0, 10 }, { 0, 20 }, { 0, 30 }, { 0, 40 }, { 0, 50 },
                                                        { 0, 60 }, { 0, 70 }, { 0, 80 }, { 0, 90 } };

USDT_SEMAPHORE(watched);

/*
 * Passes three USDT probes:
 * known:   at two places. It has arguments of each kind: register, constant, memory, variable, element of a table
 * watched: it has a semaphore, so it is passed only while somebody watches it
 * odd:     all but its first argument are of kinds that the monitor cannot read
 */
static void passProbes(int number, const char *name, dbCommon *prec)
{
    volatile short local = (short)(number - 5);

    if (number % 2)
        USDT_PROBE("latency", "known", "-4@%k[n] 8@%[name] 8@%[prec] -2@%[local] 1@$-3 4@%[limit]", USDT_NO_SEMAPHORE,
                   [n] "r"(number), [name] "r"(name), [prec] "r"(prec), [local] "m"(local), [limit] "m"(probeLimit));
    else
        USDT_PROBE("latency", "known", "-4@%[n] 8@%[name] 8@%[prec] -2@%[local] -1@$-3 8@8(%[table],%q[twice],8)",
                   USDT_NO_SEMAPHORE, [n] "m"(number), [name] "m"(name), [prec] "r"(prec), [local] "m"(local),
                   [table] "r"(table), [twice] "r"(2l * number));
    if (USDT_IS_WATCHED(watched))
        USDT_PROBE("latency", "watched", "-4@%k[n]", "watched", [n] "r"(number));
    USDT_PROBE("latency", "odd", "-4@%k[n] 8f@%%xmm0 8@%%fs:16 1@%%ah 4@nowhere(%%rip) %%rax",
               USDT_NO_SEMAPHORE, [n] "r"(number));
}

/* Calls knownCall A times, with number = 0, 1, … 9, 0, …; VALA counts all calls. */
static long callKnown(aSubRecord *prec)
{
    static Known known = { .small = -7, .text = "in place" };
    static long inner[2] = { 0, 1ll << 40 };
    long calls = (long)*(double *)prec->a;

    memcpy(&known.inner, &(void *){ inner }, sizeof(void *));
    known.round++;
    for (long i = 0; i < calls; i++) {
        known.real = (double)(i % 10) / 4 - 1;
        known.single = (float)known.real;
        knownCall((int)(i % 10), i % 2 ? "odd" : "even", &known, (dbCommon *)prec);
        passProbes((int)(i % 10), i % 2 ? "odd" : "even", (dbCommon *)prec);
    }
    *(double *)prec->vala += (double)calls;
    return 0;
}

/* Reads the wall clock as often as VALA has room, each time by a system call, so that the kernel reads it between the
 * begin and the end of this call. VALA, VALB: s and ns. */
static long readClock(aSubRecord *prec)
{
    for (unsigned i = 0; i < prec->nova && i < prec->novb; i++) {
        struct timespec now;

        syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
        ((epicsInt32 *)prec->vala)[i] = (epicsInt32)now.tv_sec;
        ((epicsInt32 *)prec->valb)[i] = (epicsInt32)now.tv_nsec;
    }
    return 0;
}

/* Calls pluginCall() of the library that the variable PLUGIN names, A times. It loads the library if it is not loaded.
 * If B is not 0, it unloads it afterwards. */
static long callPlugin(aSubRecord *prec)
{
    static void *plugin; /* only this record has this routine */
    void (*call)(long);

    if (!plugin)
        plugin = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        return -1;
    memcpy(&call, &(void *){ dlsym(plugin, "pluginCall") }, sizeof(call));
    for (long i = 0; i < (long)*(double *)prec->a; i++)
        call(i);
    if (*(double *)prec->b != 0) {
        dlclose(plugin);
        plugin = NULL;
    }
    return 0;
}

epicsRegisterFunction(callPlugin);
epicsRegisterFunction(readClock);
epicsRegisterFunction(callKnown);
epicsRegisterFunction(popOwn);
epicsRegisterFunction(processByCallback);
epicsRegisterFunction(sleepInCallback);
epicsRegisterFunction(processOnce);
epicsRegisterFunction(putInside);
epicsRegisterFunction(spinFor);
epicsRegisterFunction(sleepFor);
epicsRegisterFunction(napShortly);
epicsRegisterFunction(completeAfter);
epicsRegisterFunction(stampFirst);
epicsRegisterFunction(stampLater);
epicsRegisterFunction(holdMany);
epicsRegisterFunction(mapMemory);
epicsRegisterFunction(waitForGate);

/* --- waits that never end ---------------------------------------------------------------------------------------- */

static pthread_mutex_t plain[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_rwlock_t readWrite = PTHREAD_RWLOCK_INITIALIZER;
static epicsMutexId base;
static int holders;

static void lockOne(int kind, int which)
{
    if (kind == 2 && which == 0) {
        pthread_rwlock_wrlock(&readWrite);
    } else if (kind && which == 0) {
        epicsMutexMustLock(base);
    } else {
        pthread_mutex_lock(&plain[which]);
    }
}

/* Two records, one with A = 0 and one with A = 1, lock two mutexes in opposite order, as soon as both have the first
 * one. B: 0 two of pthread; 1 one of Base and one of pthread; 2 a read-write lock and one of pthread. Of two of Base,
 * which have priority inheritance, the kernel sees the deadlock, and glibc ends the IOC (pthread_mutex_lock:
 * EDEADLK). */
static long lockTwo(aSubRecord *prec)
{
    int first = (int)*(double *)prec->a, kind = (int)*(double *)prec->b;

    lockOne(kind, first);
    __atomic_add_fetch(&holders, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&holders, __ATOMIC_SEQ_CST) < 2)
        epicsThreadSleep(0.01);
    lockOne(kind, !first);
    return 0;
}

static void *lockAndEnd(void *arg)
{
    pthread_mutex_lock(arg);
    return NULL;
}

/* Waits for a mutex that a thread has locked which has ended since. */
static long lockOrphan(aSubRecord *prec)
{
    static pthread_mutex_t orphan = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;

    if (pthread_create(&thread, NULL, lockAndEnd, &orphan) == 0)
        pthread_join(thread, NULL);
    pthread_mutex_lock(&orphan);
    return 0;
}

static void *lockRecord(void *prec)
{
    dbScanLock(prec);
    dbScanUnlock(prec);
    return NULL;
}

/* Holds its lock set, and waits for the end of a thread that waits for that. */
static long joinLocked(aSubRecord *prec)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, lockRecord, prec) || pthread_join(thread, NULL);
}

/* Waits for the program. */
static long runProgram(aSubRecord *prec)
{
    return system(prec->a);
}

/* Writes a megabyte into this pipe. */
static long writeOutput(const char *path)
{
    static const char block[4096];
    int file = open(path, O_WRONLY);

    for (int i = 0; file >= 0 && i < 256; i++)
        if (write(file, block, sizeof(block)) < 0)
            break;
    return file < 0 ? -1 : close(file);
}

/* Waits for input from the pipe or file whose path is in A, or from this port of this host; "uPORT": of UDP; "sPORT":
 * by select. ">PATH": writes there. */
static long readInput(aSubRecord *prec)
{
    const char *to = *(char *)prec->a == '>' ? (char *)prec->a + 1 : NULL;
    char way = *(char *)prec->a, byte;
    struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)atoi((char *)prec->a + (way == 'u' || way == 's'))) };
    int file = to ? -1 : addr.sin_port ? socket(AF_INET, way == 'u' ? SOCK_DGRAM : SOCK_STREAM, 0) :
               open(prec->a, O_RDONLY);
    fd_set files;

    if (to)
        return writeOutput(to);
    if (file < 0 || (addr.sin_port && connect(file, (struct sockaddr *)&addr, sizeof(addr))))
        return -1;
    FD_ZERO(&files);
    FD_SET(file, &files);
    if (way == 's')
        select(file + 1, &files, NULL, NULL, NULL);
    return addr.sin_port ? recv(file, &byte, 1, 0) : read(file, &byte, 1);
}

static void makeMutex(void *arg)
{
    base = epicsMutexMustCreate();
}

static long initLockTwo(aSubRecord *prec)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, makeMutex, NULL);
    return 0;
}

epicsRegisterFunction(lockTwo);
epicsRegisterFunction(initLockTwo);
epicsRegisterFunction(lockOrphan);
epicsRegisterFunction(joinLocked);
epicsRegisterFunction(runProgram);
epicsRegisterFunction(readInput);
