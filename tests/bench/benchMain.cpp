/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * benchIoc DBD DB...: an IOC that repeats one operation as fast as it can, and says how long one operation took.
 *
 * It reads lines "WHAT MS" from stdin, repeats the operation WHAT for MS milliseconds, and answers "WHAT NS COUNT": the
 * mean time of one operation (ns), and the number of operations. Answers go to the file that was stdout at the start.
 * Operations of the main thread:
 *   process   one record of the chain that begins with BENCH:1. The chain is processed as by a scan thread (lock,
 *             process, unlock). The record BENCH:LEN has the number of its records
 *   put       dbPutField of a field that does not process its record
 *   putproc   dbPutField of a field that processes its record
 *   read      dbGetField
 *   call      a system call: pread64 of one byte
 *   wake      wakes the thread benchEcho, and waits until that wakes the main thread: two wake-ups, two waits for a CPU
 * Operations of threads that serve a queue. Each operation requests the next one, so no thread sleeps:
 *   interrupt scanIoRequest: a callback processes BENCH:INTR
 *   async     BENCH:ASYNC begins, and a callback completes it
 *   relay     ProcessCallback of Base completes BENCH:RELAY0, whose forward link begins BENCH:RELAY1, and so on
 *   once      scanOnce of BENCH:ONCE
 * Other lines:
 *   tpro N    sets TPRO of the records with which these chains begin
 *   stdout F  from now on, stdout of the IOC is the file F
 *   cpu N     from now on, times are those of the clock (0), or the CPU time of this process (1)
 *   slow N US each Nth chain of "process" takes US µs longer; this time is not counted. N = 0: no chain
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <aiRecord.h>
#include <callback.h>
#include <dbAccess.h>
#include <dbCommon.h>
#include <dbScan.h>
#include <devSup.h>
#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsExit.h>
#include <epicsExport.h>
#include <epicsThread.h>
#include <iocInit.h>
#include <menuScan.h>

extern "C" int benchIoc_registerRecordDeviceDriver(struct dbBase *pdbbase);

static DBADDR chain, plainField, procField, intr, async, once, relay[2];
static IOSCANPVT interrupts;
static epicsCallback completion, relayed[2];
static int slowEvery;
static double slowNs, spun;

static clockid_t timer = CLOCK_MONOTONIC;

static double now()
{
    struct timespec t;

    clock_gettime(timer, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void spin(double ns)
{
    double begin = now(), t;

    do
        t = now();
    while (t - begin < ns);
    spun += t - begin;
}

static void process()
{
    static int n;

    dbScanLock(chain.precord);
    dbProcess(chain.precord);
    if (slowEvery && ++n % slowEvery == 0)
        spin(slowNs);
    dbScanUnlock(chain.precord);
}

static void putTo(DBADDR *addr)
{
    static double value;

    value += 1;
    dbPutField(addr, DBR_DOUBLE, &value, 1);
}

static void put() { putTo(&plainField); }
static void putproc() { putTo(&procField); }

static void read()
{
    double value;
    long n = 1;

    dbGetField(&procField, DBR_DOUBLE, &value, NULL, &n, NULL);
}

static int zeros;

static void call()
{
    char c;

    if (pread(zeros, &c, 1, 0) != 1)
        perror("pread");
}

static epicsEventId there, back;

/* As the main thread it has no real-time priority: neither preempts the other. */
static void echo(void *)
{
    struct sched_param none = {};

    if (pthread_setschedparam(pthread_self(), SCHED_OTHER, &none))
        fprintf(stderr, "benchEcho keeps its priority\n");
    for (;;) {
        epicsEventMustWait(there);
        epicsEventMustTrigger(back);
    }
}

static void wake()
{
    epicsEventMustTrigger(there);
    epicsEventMustWait(back);
}

struct result { double ns, count; };

/* Reads the clock once for each batch, so that reading it costs next to nothing. */
static result measure(void (*once)(), double ms)
{
    const int batch = 64;
    double begin = now(), end = begin + ms * 1e6, t;
    double n = 0;

    spun = 0;
    do {
        for (int i = 0; i < batch; i++)
            once();
        n += batch;
        t = now();
    } while (t < end);
    return {(t - begin - spun) / n, n};
}

/* --- operations of threads that serve a queue --------------------------------------------------------------- */

static int running;
static double turns;
static epicsEventId stopped;

/* Counts an operation that is finished. Returns true if the caller must request another one. */
static bool finishOne()
{
    turns++;
    if (epicsAtomicGetIntT(&running))
        return true;
    epicsEventMustTrigger(stopped);
    return false;
}

static void interrupt() { scanIoRequest(interrupts); }

static void interrupted(void *, IOSCANPVT, int)
{
    if (finishOne())
        interrupt();
}

static void begin()
{
    dbScanLock(async.precord);
    dbProcess(async.precord);
    dbScanUnlock(async.precord);
}

static void complete(epicsCallback *)
{
    dbScanLock(async.precord); /* as ProcessCallback of callback.c does */
    async.precord->rset->process(async.precord);
    dbScanUnlock(async.precord);
    if (finishOne())
        begin();
}

static bool goesOn; /* the next one of the relay begins */

static void relayFirst()
{
    goesOn = true;
    dbScanLock(relay[0].precord);
    dbProcess(relay[0].precord);
    dbScanUnlock(relay[0].precord);
}

/* Reads one of the two records that make each other process. */
static long readRelay(aiRecord *prec, int number)
{
    if (prec->pact) {
        goesOn = finishOne();
        return 2;
    }
    if (!goesOn)
        return 2;
    prec->pact = TRUE;
    callbackRequestProcessCallback(&relayed[number], priorityMedium, prec);
    return 0;
}

static void onceDone(void *, dbCommon *);

static void scanOne() { scanOnceCallback(once.precord, onceDone, NULL); }

static void onceDone(void *, dbCommon *)
{
    if (finishOne())
        scanOne();
}

static result measureQueue(void (*first)(), double ms)
{
    double t = now();

    turns = 0;
    epicsAtomicSetIntT(&running, 1);
    first();
    epicsThreadSleep(ms / 1e3);
    epicsAtomicSetIntT(&running, 0);
    epicsEventMustWait(stopped);
    return {(now() - t) / turns, turns};
}

static long intInfo(int, dbCommon *, IOSCANPVT *to)
{
    *to = interrupts;
    return 0;
}

static long readAi(aiRecord *prec)
{
    for (int i = 0; i < 2; i++)
        if ((dbCommon *)prec == relay[i].precord)
            return readRelay(prec, i);
    if (prec->scan == menuScanPassive && !prec->pact) {
        prec->pact = TRUE;
        callbackRequest(&completion);
        return 0;
    }
    prec->val += 1;
    prec->udf = FALSE;
    return 2;
}

static aidset devAiBench = {{6, NULL, NULL, NULL, intInfo}, readAi, NULL};
extern "C" {
epicsExportAddress(dset, devAiBench);
}

/* ----------------------------------------------------------------------------------------------------------- */

static void setTpro(int value)
{
    DBADDR *roots[] = {&chain, &intr, &async, &once, &relay[0], &relay[1]};

    for (DBADDR *root : roots) {
        dbScanLock(root->precord);
        root->precord->tpro = (epicsUInt8)value;
        dbScanUnlock(root->precord);
    }
}

/* Loads the database, starts the IOC and finds the records. Returns the number of records of the chain; 0: it
 * failed. */
static double startIoc(int argc, char *argv[])
{
    DBADDR lengthField;
    double length = 0;
    long n = 1;

    if (dbLoadDatabase(argv[1], NULL, NULL))
        return 0;
    benchIoc_registerRecordDeviceDriver(pdbbase);
    for (int i = 2; i < argc; i++)
        if (dbLoadRecords(argv[i], NULL))
            return 0;
    stopped = epicsEventMustCreate(epicsEventEmpty);
    there = epicsEventMustCreate(epicsEventEmpty);
    back = epicsEventMustCreate(epicsEventEmpty);
    epicsThreadMustCreate("benchEcho", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall), echo,
                          NULL);
    zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zeros < 0)
        return 0;
    scanIoInit(&interrupts);
    scanIoSetComplete(interrupts, interrupted, NULL);
    callbackSetCallback(complete, &completion);
    callbackSetPriority(priorityMedium, &completion);
    if (iocInit())
        return 0;
    if (dbNameToAddr("BENCH:1", &chain) || dbNameToAddr("BENCH:PUT.HOPR", &plainField) ||
        dbNameToAddr("BENCH:PUT", &procField) || dbNameToAddr("BENCH:LEN", &lengthField) ||
        dbNameToAddr("BENCH:INTR", &intr) || dbNameToAddr("BENCH:ASYNC", &async) || dbNameToAddr("BENCH:ONCE", &once) ||
        dbNameToAddr("BENCH:RELAY0", &relay[0]) || dbNameToAddr("BENCH:RELAY1", &relay[1]) ||
        dbGetField(&lengthField, DBR_DOUBLE, &length, NULL, &n, NULL))
        return 0;
    return length;
}

static void measureWork(const char *what, double ms, double length, FILE *answers)
{
    static const struct {
        const char *name;
        result (*measure)(void (*)(), double);
        void (*once)();
    } works[] = {
        {"process", measure, process},         {"put", measure, put},          {"putproc", measure, putproc},
        {"read", measure, read},               {"async", measureQueue, begin}, {"once", measureQueue, scanOne},
        {"interrupt", measureQueue, interrupt}, {"call", measure, call},       {"wake", measure, wake},
        {"relay", measureQueue, relayFirst}
    };

    for (auto &work : works)
        if (!strcmp(what, work.name)) {
            result r = work.measure(work.once, ms);

            if (work.once == process)
                r.ns /= length;
            fprintf(answers, "%s %.1f %.0f\n", what, r.ns, r.count);
            fflush(answers);
        }
}

/* 0; or -1: the file for stdout cannot be opened. */
static int obey(const char *line, double length, FILE *answers)
{
    char what[16], file[200];
    double ms;

    if (sscanf(line, "slow %d %lf", &slowEvery, &slowNs) == 2) {
        slowNs *= 1e3;
    } else if (sscanf(line, "tpro %lf", &ms) == 1) {
        setTpro((int)ms);
    } else if (sscanf(line, "cpu %lf", &ms) == 1) {
        timer = ms ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    } else if (sscanf(line, "stdout %199s", file) == 1) {
        if (!freopen(file, "w", stdout)) /* stdio then buffers lines for a terminal, and blocks for other files */
            return -1;
    } else if (sscanf(line, "%15s %lf", what, &ms) == 2) {
        measureWork(what, ms, length, answers);
    }
    return 0;
}

int main(int argc, char *argv[])
{
    char line[256];
    double length;
    FILE *answers;

    if (argc < 3) {
        fprintf(stderr, "usage: benchIoc DBD DB...\n");
        return 2;
    }
    length = startIoc(argc, argv);
    fflush(stdout);
    answers = fdopen(dup(STDOUT_FILENO), "w");
    if (length == 0 || !answers)
        return 1;
    fprintf(answers, "ready\n");
    fflush(answers);
    while (fgets(line, sizeof(line), stdin))
        if (obey(line, length, answers))
            return 1;
    epicsExit(0);
    return 0;
}
