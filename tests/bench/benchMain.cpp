/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * benchIoc DBD DB...: an IOC that does one thing as fast as it can, and says what one took.
 *
 * Reads lines "WHAT MS" from stdin, does WHAT for MS milliseconds in this one thread and answers
 * "WHAT NS", the mean ns of one. WHAT is
 *   process   one record of the chain that begins with BENCH:1 (as a scan thread would: lock, process, unlock)
 *   put       dbPutField of a field that does not process its record
 *   putproc   dbPutField of a field that does
 *   read      dbGetField
 * The chain's length is the number in the record BENCH:LEN.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <dbAccess.h>
#include <dbCommon.h>
#include <epicsExit.h>
#include <iocInit.h>

extern "C" int benchIoc_registerRecordDeviceDriver(struct dbBase *pdbbase);

static DBADDR chain, plainField, procField;

static double now()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void process()
{
    dbScanLock(chain.precord);
    dbProcess(chain.precord);
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

/* Mean ns of one: the clock is read once in a batch, so that it costs nothing. */
static double measure(void (*once)(), double ms)
{
    const int batch = 64;
    double begin = now(), end = begin + ms * 1e6, t;
    double n = 0;

    do {
        for (int i = 0; i < batch; i++)
            once();
        n += batch;
        t = now();
    } while (t < end);
    return (t - begin) / n;
}

int main(int argc, char *argv[])
{
    char line[64], what[16];
    double ms, length;
    long n = 1;
    DBADDR lengthField;

    if (argc < 3) {
        fprintf(stderr, "usage: benchIoc DBD DB...\n");
        return 2;
    }
    if (dbLoadDatabase(argv[1], NULL, NULL))
        return 1;
    benchIoc_registerRecordDeviceDriver(pdbbase);
    for (int i = 2; i < argc; i++)
        if (dbLoadRecords(argv[i], NULL))
            return 1;
    if (iocInit())
        return 1;
    if (dbNameToAddr("BENCH:1", &chain) || dbNameToAddr("BENCH:PUT.HOPR", &plainField) ||
        dbNameToAddr("BENCH:PUT", &procField) || dbNameToAddr("BENCH:LEN", &lengthField) ||
        dbGetField(&lengthField, DBR_DOUBLE, &length, NULL, &n, NULL))
        return 1;
    printf("ready\n");
    fflush(stdout);

    while (fgets(line, sizeof(line), stdin)) {
        double ns;

        if (sscanf(line, "%15s %lf", what, &ms) != 2)
            continue;
        if (!strcmp(what, "process"))
            ns = measure(process, ms) / length;
        else if (!strcmp(what, "put"))
            ns = measure(put, ms);
        else if (!strcmp(what, "putproc"))
            ns = measure(putproc, ms);
        else if (!strcmp(what, "read"))
            ns = measure(read, ms);
        else
            continue;
        printf("%s %.1f\n", what, ns);
        fflush(stdout);
    }
    epicsExit(0);
    return 0;
}
