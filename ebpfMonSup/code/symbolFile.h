/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the symbols of a stripped program are. It may carry them packed (.gnu_debugdata). Others are in files, which are looked
 * for below the root of the process first, then below ours:
 *  - with the name that the program says (.gnu_debuglink), beside it, in .debug beside it, in /usr/lib/debug and its folder;
 *  - by the program's build-id: /usr/lib/debug/.build-id/xx/yyy.debug, as packages of symbols have it;
 *  - the cache of a debuginfod client of our user;
 *  - folders of the site, FOLDER/xx/yyy.debug, which the command ebpfMonSymbols fills.
 * A file is believed only if it has the build-id of the program. To read it may take any time: in a job (foreign.h).
 */
#ifndef EBPFMON_SYMBOLFILE_H
#define EBPFMON_SYMBOLFILE_H

#include <sys/types.h>

#include "code/elfFile.h"

typedef struct {
    pid_t pid;
    char  program[256];  /* as the process calls it */
    char  folders[1024]; /* of the site, with ':' between them */
    char  cache[512];    /* of the debuginfod client */
} ebpfMonSymbolPlaces;

/* Where our own user and site have symbols: EBPFMON_SYMBOLS, and DEBUGINFOD_CACHE_PATH, or what a debuginfod client does
 * without it. */
void ebpfMonSymbolPlacesInit(ebpfMonSymbolPlaces *places);

/* The search for the symbols of one file. To be zeroed before. */
typedef struct {
    unsigned place;      /* the next one */
} ebpfMonSymbolSearch;

/* Adds the next file with symbols to "file". Nonzero: there was one. */
int ebpfMonSymbolFileAdd(ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, ebpfMonSymbolSearch *search);

/* Closes all that were added, and forgets them. */
void ebpfMonSymbolFilesClose(ebpfMonElfFile *file);

#endif
