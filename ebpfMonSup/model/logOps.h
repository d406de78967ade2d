/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that records and the shell call for the logs: one of the tables of ops.h. */
#ifndef EBPFMON_LOGOPS_H
#define EBPFMON_LOGOPS_H

#include <stddef.h>

typedef enum {
    ebpfMonLogOff,
    ebpfMonLogChanges, /* puts that change the value, and puts that failed */
    ebpfMonLogAll,
    ebpfMonLogBurst    /* all; but quick puts to one PV become one line at their end */
} ebpfMonLogMode;

/* The mode with this name, or with this number of caPutLog (-1 off, 0 changes, 1 burst, 2 all). -1: there is none. */
int ebpfMonLogModeParse(const char *name);
const char *ebpfMonLogModeName(ebpfMonLogMode mode);

typedef struct {
    void *arg; /* the first argument of each function */
    /* Writes JSON lines to a file. maxMB, hours: the file is rotated when it has this size or age; 0: never. keep:
     * number of rotated files that stay. */
    long (*json)(void *arg, const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode);
    /* Writes lines in the format of caPutLog. target: a file (with a "/" in its name), host[:port], or "PV". prefix:
     * stands before each line; %i is the IOC. */
    long (*caPutLog)(void *arg, const char *target, int json, ebpfMonLogMode mode, const char *prefix);
    /* Sets a pair of caPutLog's JSON metadata. An empty value removes the key. */
    long (*metadata)(void *arg, const char *key, const char *value);
    /* Rotates all files now. */
    long (*rotate)(void *arg);
    void (*resetLost)(void *arg);
    void (*report)(void *arg, int level);
    /* Sends puts, counts and spans to a collector. url: its base, or "off"; signals: some of "logs,metrics,traces";
     * headers: "Name=value,…", other characters as %XX. */
    long (*otlp)(void *arg, const char *url, const char *signals, const char *headers);
    /* Sends spans to Zipkin. url: the whole URL, or "off". */
    long (*zipkin)(void *arg, const char *url);
    void (*otlpReport)(void *arg, int level);
} ebpfMonLogOps;

/* Used while there is no monitor: every function fails, and says so. */
extern const ebpfMonLogOps ebpfMonLogOpsAbsent;

#endif
