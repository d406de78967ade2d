/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the logs: one of the tables of ops.h. */
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
    /* JSON lines to a file. maxMB, hours: rotated when it has become so large, so old; 0: not. keep: rotated files. */
    long (*json)(void *arg, const char *file, double maxMB, double hours, int keep, ebpfMonLogMode mode);
    /* caPutLog's format. target: a file (has a "/"), host[:port], or "PV". prefix: before each line, %i is the IOC. */
    long (*caPutLog)(void *arg, const char *target, int json, ebpfMonLogMode mode, const char *prefix);
    /* caPutLog's JSON metadata; an empty value takes the key away. */
    long (*metadata)(void *arg, const char *key, const char *value);
    /* Begins all files anew. */
    long (*rotate)(void *arg);
    void (*resetLost)(void *arg);
    void (*report)(void *arg, int level);
    /* Puts, counts and spans to a collector. url: its base, or "off"; signals: some of "logs,metrics,traces"; headers:
     * "Name=value,…" with %XX for what else. */
    long (*otlp)(void *arg, const char *url, const char *signals, const char *headers);
    /* Spans to Zipkin. url: the whole, or "off". */
    long (*zipkin)(void *arg, const char *url);
    void (*otlpReport)(void *arg, int level);
} ebpfMonLogOps;

/* Where there is no monitor: every operation fails, and says so where it has a text. */
extern const ebpfMonLogOps ebpfMonLogOpsAbsent;

#endif
