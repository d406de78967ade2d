/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the symbols of a stripped program. They may be packed in the program itself (.gnu_debugdata), or in another
 * file. This file is searched below the root of the process first, then below our own root:
 *  - by the name that the program gives (.gnu_debuglink): beside the program, in .debug beside it, in /usr/lib/debug
 *    and its folder;
 *  - by the program's build-id: /usr/lib/debug/.build-id/xx/yyy.debug, where packages of symbols install it;
 *  - in the cache of a debuginfod client of our user;
 *  - in folders of the site, FOLDER/xx/yyy.debug, which the command ebpfMonSymbols fills.
 * A file is believed only if it has the build-id of the program. A read may take any time: call these in a job
 * (foreign.h).
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

/* Sets the folders of the site (EBPFMON_SYMBOLS) and the cache of our user (DEBUGINFOD_CACHE_PATH, or the default of a
 * debuginfod client). */
void ebpfMonSymbolPlacesInit(ebpfMonSymbolPlaces *places);

/* The search for the symbols of one file. To be zeroed before. */
typedef struct {
    unsigned place;      /* the next one */
} ebpfMonSymbolSearch;

/* Adds the next file with symbols to "file". Nonzero: there was one. */
int ebpfMonSymbolFileAdd(ebpfMonElfFile *file, const ebpfMonSymbolPlaces *places, ebpfMonSymbolSearch *search);

/* Closes the file that was added last, and forgets it: its symbols are not believed. */
void ebpfMonSymbolFileDrop(ebpfMonElfFile *file);

/* Closes all that were added, and forgets them. */
void ebpfMonSymbolFilesClose(ebpfMonElfFile *file);

#endif
