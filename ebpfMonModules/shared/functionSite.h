/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds places for probes in the files that a process has mapped: the cheapest place in a function, by its symbol, or
 * the places of a USDT probe, by its name. The process and its files may never answer: each look is a job that can be
 * abandoned (foreign.h).
 */
#ifndef EBPFMON_FUNCTIONSITE_H
#define EBPFMON_FUNCTIONSITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/machine.h"
#include "shared/ebpfMonQuery.h"

#define EBPFMON_FUNCTION_SITES  256 /* of a pattern, at most */
#define EBPFMON_FUNCTION_NAME   128
#define EBPFMON_OBJECT_PATTERN  128

typedef struct {
    char     object[EBPFMON_OBJECT_PATTERN]; /* pattern (glob) of the file: of its name, or with a "/" of its path */
    char     symbol[EBPFMON_FUNCTION_NAME];  /* a name, or a pattern (glob); empty: "offset" in the file */
    uint64_t offset;      /* bytes behind the symbol; then the probe sits exactly there */
    unsigned args;        /* EBPFMON_ARG1 …: those that must still stand */
    int      needReturn;  /* it is a return probe, or the entry of a call whose return is probed, too */
    int      isUsdt;      /* "symbol" is PROVIDER:NAME of a USDT probe; "offset" and "needReturn" are 0 */
} ebpfMonFunctionWanted;

typedef struct {
    char path[160];       /* opens exactly this file, as long as the process lives */
    char name[EBPFMON_FUNCTION_NAME];
    uint64_t address;     /* of the site, in the process */
    dev_t    dev;         /* of its file … */
    ino_t    ino;
    ebpfMonSite site;
    uint64_t semaphore;   /* of a USDT probe: place of the semaphore in the file, 0: it has none … */
    struct ebpfMonQuerySite operands; /* … and where its arguments are */
} ebpfMonFunctionPlace;

typedef struct {
    unsigned count;
    ebpfMonFunctionPlace place[]; /* sorted by file */
} ebpfMonFunctionPlaces;

/* Nonzero: it is a pattern. */
int ebpfMonFunctionIsPattern(const char *symbol);

/* A number for the files of the process that match, and for where they are mapped: it is another one after some were
 * loaded or unloaded. 0: it cannot be read. */
uint64_t ebpfMonFunctionMappings(pid_t pid, const ebpfMonFunctionWanted *wanted);

/* Finds the places of a name, one for each file that has it, or of all names that match a pattern. free() them. NULL:
 * there is none, or there are too many, and "why" says so. */
ebpfMonFunctionPlaces *ebpfMonFunctionFind(pid_t pid, const ebpfMonFunctionWanted *wanted, char *why, size_t size);

/* --- code that is known by its address ---
 *
 * Where to set a probe for code that is known by its address; and where a variable of a file lies in the memory of a
 * process. The process and its files may never answer: each look is a job that can be abandoned (foreign.h).
 */

/* The place in the function that begins at "address". "args", "needReturn": as in ebpfMonFunctionWanted. 0, or -1: no
 * code of a file stands there, or it cannot be probed. */
int ebpfMonCodePlaceFind(pid_t pid, uint64_t address, unsigned args, int needReturn, ebpfMonFunctionPlace *place);

/* The address of a variable that one of the files of the process defines, by its exported symbol, which stripped files
 * have, too. 0: no file defines it, or the process does not answer. */
uint64_t ebpfMonVariableFind(pid_t pid, const char *symbol);

/* Variables of the file of the process that defines the function "anchor", by .dynsym, .symtab or a file with its
 * symbols (symbolFile.h), so static ones, too. found[i] is that of names[i]; its address is 0 if it is not there.
 * Returns how many there are. */
typedef struct {
    uint64_t address, size; /* size: as the symbol says */
} ebpfMonVariable;

#define EBPFMON_VARIABLES_MAX 8

unsigned ebpfMonVariablesFind(pid_t pid, const char *anchor, const char *const *names, unsigned count,
                              ebpfMonVariable *found);

#endif
