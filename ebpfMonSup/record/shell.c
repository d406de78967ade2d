/* SPDX-License-Identifier: BSD-3-Clause */
/* The iocsh commands. */
#include <stdlib.h>
#include <string.h>

#include <epicsExport.h>
#include <epicsStdio.h>
#include <epicsString.h>
#include <errlog.h>

#include "model/published.h"
#include "model/control.h"
#include "model/logControl.h"
#include "record/filterSub.h"
#include "record/shellDef.h"

static const char *pattern(const char *argument)
{
    return given(argument) ? argument : "*";
}

static const iocshFuncDef configureDef = {
    "ebpfMonConfigure", 5,
    ARGS(ARG("maxRecords", iocshArgInt), ARG("maxRoots", iocshArgInt), ARG("ringKiB", iocshArgInt),
         ARG("watchSelf", iocshArgInt), ARG("wireKiB", iocshArgInt))
    USAGE("Sets sizes, before iocInit. 0: the default.\n"
          "  maxRecords  records of all watched IOCs together (200000)\n"
          "  maxRoots    chain roots with a histogram (8192)\n"
          "  ringKiB     event ring, a power of two (8192)\n"
          "  watchSelf   1: this IOC is watched too (0)\n"
          "  wireKiB     ring for the packets of each network namespace (8192); -1: none are looked at\n"
          "Example: ebpfMonConfigure 500000 0 16384\n")
};

static void configureCall(const iocshArgBuf *args)
{
    ebpfMonSettings settings = {
        .maxRecords = 200000, .maxRoots = 8192, .ringKiB = 8192, .watchSelf = args[3].ival, .wireKiB = args[4].ival,
    };
    int i;

    for (i = 0; i < 3; i++) {
        if (args[i].ival < 0) {
            errlogSevPrintf(errlogMajor, "ebpfMonConfigure: %s cannot be %d: give 0 for the default\n",
                            configureDef.arg[i]->name, args[i].ival);
            done(-1);
            return;
        }
    }
    if (args[0].ival)
        settings.maxRecords = (unsigned)args[0].ival;
    if (args[1].ival)
        settings.maxRoots = (unsigned)args[1].ival;
    if (args[2].ival)
        settings.ringKiB = (unsigned)args[2].ival;
    done(ebpfMonControl()->configure(&settings));
}

static const iocshFuncDef startDef = {
    "ebpfMonStart", 0, NULL
    USAGE("Starts the monitor. iocInit does it by itself: only for trying again after a failure.\n")
};

static void startCall(const iocshArgBuf *args)
{
    ebpfMonState state = ebpfMonPublishedLock()->state;
    long status;

    (void)args;
    ebpfMonPublishedUnlock();
    if (state == ebpfMonRunning || state == ebpfMonDegraded) {
        printf("ebpfMonStart: ebpfMon runs already\n");
        return;
    }
    status = ebpfMonControl()->start();
    if (status) {
        errlogSevPrintf(errlogMajor, "ebpfMonStart: ebpfMon did not start, STATE_MSG says why\n");
    } else {
        printf("ebpfMonStart: ebpfMon runs\n");
        ebpfMonFilterAgain();
    }
    done(status);
}

static const iocshFuncDef filterDef = {
    "ebpfMonFilter", 9,
    ARGS(ARG("ioc", iocshArgString), ARG("record", iocshArgString), ARG("field", iocshArgString),
         ARG("host", iocshArgString), ARG("user", iocshArgString), ARG("level", iocshArgString),
         ARG("slowUs", iocshArgString), ARG("sample", iocshArgString), ARG("budget", iocshArgString))
    USAGE("Puts a filter in force; sets the FILTER_* PVs as well. \"\" or nothing: as it is; before\n"
          "iocInit: as the PVs are.\n"
          "  ioc record field host user  patterns with ? and *\n"
          "  level   off, puts, counts, chains or trace; IOCs that do not match are off\n"
          "  slowUs  a chain that takes so many us is kept whole; 0: none\n"
          "  sample  level trace: one chain in so many is kept\n"
          "  budget  CPU taken from each IOC, percent of one core; 0: no limit\n"
          "Example: ebpfMonFilter \"*\" \"RING:*\" \"\" \"\" \"\" trace 5000 10 2\n")
};

static void filterCall(const iocshArgBuf *args)
{
    ebpfMonFilter filter;
    char text[256] = "";
    unsigned in, inputs = 0;
    long status = 0;

    ebpfMonControl()->getFilter(&filter);
    for (in = 0; in < EBPFMON_FILTER_INPUTS && !status; in++) {
        if (!given(args[in].sval))
            continue;
        inputs |= 1u << in;
        status = ebpfMonFilterParse(&filter, in, args[in].sval, text, sizeof(text));
    }
    if (!status)
        status = ebpfMonFilterCommand(&filter, inputs, text, sizeof(text));
    if (status)
        errlogSevPrintf(errlogMajor, "ebpfMonFilter: %s\n", text);
    else
        printf("%s\n", text);
    done(status);
}

static const iocshFuncDef levelDef = {
    "ebpfMonLevel", 2, ARGS(ARG("iocPattern", iocshArgString), ARG("level", iocshArgString))
    USAGE("Sets the level of the IOCs that match, whatever the filter says; \"filter\": as it says again.\n"
          "  level  off, puts, counts, chains, trace or filter\n"
          "Of several patterns that match, the newest counts. \"filter\" cancels all that was asked for\n"
          "this very pattern, by ebpfMonReference too. ebpfMonReport 1 lists what is in force, at most 64.\n"
          "Example: ebpfMonLevel \"vac*\" trace\n")
};

static void levelCall(const iocshArgBuf *args)
{
    int level = ebpfMonLevelParse(args[1].sval);

    if (!given(args[0].sval) ||
        (level < 0 && (!given(args[1].sval) || epicsStrCaseCmp(args[1].sval, "filter") != 0))) {
        errlogSevPrintf(errlogMajor, "ebpfMonLevel: give a pattern of IOC names and one of off, puts, "
                        "counts, chains, trace, filter\n");
        done(-1);
        return;
    }
    done(ebpfMonControl()->setLevel(args[0].sval, level));
}

static const iocshFuncDef referenceDef = {
    "ebpfMonReference", 2, ARGS(ARG("iocPattern", iocshArgString), ARG("on", iocshArgInt))
    USAGE("1: counts processings of the IOCs that match by a trap on dbProcess as well, to compare with\n"
          "the count taken at the end of each chain. Dear: for tests. 0: stops it.\n"
          "Example: ebpfMonReference \"vac*\" 1\n")
};

static void referenceCall(const iocshArgBuf *args)
{
    if (!given(args[0].sval)) {
        errlogSevPrintf(errlogMajor, "ebpfMonReference: give a pattern of IOC names, and 1 or 0\n");
        done(-1);
        return;
    }
    done(ebpfMonControl()->setReference(args[0].sval, args[1].ival));
}

static const iocshFuncDef iocsDef = {
    "ebpfMonIocs", 0, NULL USAGE("Lists the IOCs seen on this host, and how closely each is watched.\n")
};

static void iocsCall(const iocshArgBuf *args)
{
    (void)args;
    done(ebpfMonControl()->listIocs());
}

static const iocshFuncDef recordsDef = {
    "ebpfMonRecords", 2, ARGS(ARG("iocPattern", iocshArgString), ARG("recordPattern", iocshArgString))
    USAGE("Lists records of the IOCs that match, with their counts. Nothing: all.\n"
          "Example: ebpfMonRecords vac1 \"VAC:*:PRESSURE\"\n")
};

static void recordsCall(const iocshArgBuf *args)
{
    done(ebpfMonControl()->listRecords(pattern(args[0].sval), pattern(args[1].sval)));
}

static const iocshFuncDef putsDef = {
    "ebpfMonPuts", 1, ARGS(ARG("n", iocshArgInt))
    USAGE("Prints the newest n puts (20), the newest last.\n"
          "Example: ebpfMonPuts 50\n")
};

static void putsCall(const iocshArgBuf *args)
{
    unsigned wanted = args[0].ival > 0 ? (unsigned)args[0].ival : 20;
    unsigned count = 0;
    char line[EBPFMON_LINE_SIZE];
    ebpfMonPut *puts;
    const ebpfMonPublished *published;

    if (wanted > EBPFMON_PUTS_MAX)
        wanted = EBPFMON_PUTS_MAX;
    puts = malloc(wanted * sizeof(*puts));
    if (!puts) {
        errlogSevPrintf(errlogMajor, "ebpfMonPuts: out of memory, ask for fewer\n");
        done(-1);
        return;
    }
    published = ebpfMonPublishedLock(); /* copy, and print without the lock: a terminal may be slow */
    for (; count < wanted && ebpfMonPublishedGetPut(published, count); count++)
        puts[count] = *ebpfMonPublishedGetPut(published, count);
    ebpfMonPublishedUnlock();
    while (count--) {
        ebpfMonPutLine(&puts[count], line, sizeof(line));
        printf("%s\n", line);
    }
    free(puts);
}

static const iocshFuncDef chainsDef = {
    "ebpfMonChains", 1, ARGS(ARG("pattern", iocshArgString))
    USAGE("Lists the chains whose root record matches, with their latencies. Nothing: all.\n"
          "Example: ebpfMonChains \"VAC:*\"\n")
};

static void chainsCall(const iocshArgBuf *args)
{
    done(ebpfMonControl()->listChains(pattern(args[0].sval)));
}

static const iocshFuncDef traceDef = {
    "ebpfMonTrace", 2, ARGS(ARG("pattern", iocshArgString), ARG("chains", iocshArgInt))
    USAGE("Prints the next chains in which a record that matches processes, as trees: what made it process,\n"
          "by which link, when, and what it holds then. Of an IOC at level trace these are all of its chains\n"
          "(or one in FILTER_SAMPLE), else the slow ones. Without a number one; nothing: no more.\n"
          "Example: ebpfMonTrace \"VAC:*\" 5\n")
};

static void traceCall(const iocshArgBuf *args)
{
    if (args[1].ival < 0) {
        errlogSevPrintf(errlogMajor, "ebpfMonTrace: %d chains cannot be printed: give a number from 1 on\n",
                        args[1].ival);
        done(-1);
        return;
    }
    done(ebpfMonControl()->trace(pattern(args[0].sval),
                                 given(args[0].sval) && !args[1].ival ? 1 : (unsigned)args[1].ival));
}

static const iocshFuncDef searchesDef = {
    "ebpfMonSearches", 1, ARGS(ARG("n", iocshArgInt))
    USAGE("Lists names that clients ask for and nobody answers, the loudest clients, and the servers\n"
          "whose beacons are heard, n (20) of each.\n"
          "Example: ebpfMonSearches 100\n")
};

static void searchesCall(const iocshArgBuf *args)
{
    unsigned wanted = args[0].ival > 0 ? (unsigned)args[0].ival : 20;
    ebpfMonSearches *copy = malloc(sizeof(*copy));
    char first[24], last[24];

    if (!copy) {
        errlogSevPrintf(errlogMajor, "ebpfMonSearches: out of memory, try again when there is some\n");
        done(-1);
        return;
    }
    *copy = ebpfMonPublishedLock()->searches; /* copy, and print without the lock: a terminal may be slow */
    ebpfMonPublishedUnlock();

    printf("%llu names asked for, %.1f a second; never found: %u\n", (unsigned long long)copy->count,
           copy->rate, copy->never);
    if (copy->names)
        printf("%-60s %10s  %-19s  %-19s  %s\n", "never found", "asked", "first", "last", "by");
    for (unsigned i = 0; i < copy->names && i < wanted; i++) {
        const ebpfMonSearchRow *row = &copy->name[i];

        epicsTimeToStrftime(first, sizeof(first), "%Y-%m-%d %H:%M:%S", &row->first);
        epicsTimeToStrftime(last, sizeof(last), "%Y-%m-%d %H:%M:%S", &row->last);
        printf("%-60s %10llu  %-19s  %-19s  %s\n", row->name, (unsigned long long)row->count, first, last, row->who);
    }
    if (copy->clients)
        printf("%-30s %10s %10s %12s\n", "client", "asked", "1/s", "never found");
    for (unsigned i = 0; i < copy->clients && i < wanted; i++) {
        const ebpfMonSearchClientRow *row = &copy->client[i];

        printf("%-30s %10llu %10.1f %12u\n", row->name, (unsigned long long)row->count, row->rate, row->never);
    }
    printf("%llu beacons, %.1f a second, of %u servers\n", (unsigned long long)copy->beacons, copy->beaconRate,
           copy->heard);
    if (copy->servers)
        printf("%-30s %10s %10s  %s\n", "server", "beacons", "restarts", "since");
    for (unsigned i = 0; i < copy->servers && i < wanted; i++) {
        const ebpfMonBeaconRow *row = &copy->server[i];

        epicsTimeToStrftime(first, sizeof(first), "%Y-%m-%d %H:%M:%S", &row->began);
        printf("%-30s %10llu %10llu  %s\n", row->name, (unsigned long long)row->count,
               (unsigned long long)row->restarts, first);
    }
    if (copy->replaced)
        printf("%llu names, clients or servers were given up for others: the tables were full\n",
               (unsigned long long)copy->replaced);
    free(copy);
}

static const iocshFuncDef resetDef = {
    "ebpfMonReset", 0, NULL USAGE("Sets the loss counters to 0 and clears the alarm of LOST_CNT.\n")
};

static void resetCall(const iocshArgBuf *args)
{
    (void)args;
    ebpfMonControl()->resetLost();
    ebpfMonLogControl()->resetLost();
}

static const iocshFuncDef reportDef = {
    "ebpfMonReport", 1, ARGS(ARG("level", iocshArgInt))
    USAGE("Prints state, costs and losses; with level 1 and more, probes and sites too.\n"
          "The same as: dbior drvEbpfMon level\n")
};

static void reportCall(const iocshArgBuf *args)
{
    ebpfMonControl()->report(args[0].ival);
    ebpfMonLogControl()->report(args[0].ival);
}

static void ebpfMonShellRegistrar(void)
{
    iocshRegister(&configureDef, configureCall);
    iocshRegister(&startDef, startCall);
    iocshRegister(&filterDef, filterCall);
    iocshRegister(&levelDef, levelCall);
    iocshRegister(&referenceDef, referenceCall);
    iocshRegister(&iocsDef, iocsCall);
    iocshRegister(&recordsDef, recordsCall);
    iocshRegister(&putsDef, putsCall);
    iocshRegister(&chainsDef, chainsCall);
    iocshRegister(&traceDef, traceCall);
    iocshRegister(&searchesDef, searchesCall);
    iocshRegister(&resetDef, resetCall);
    iocshRegister(&reportDef, reportCall);
}
epicsExportRegistrar(ebpfMonShellRegistrar);
