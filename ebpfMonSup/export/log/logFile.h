/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of lines. Written in batches, whole lines only; rotated by size, by age and on request (FILE, FILE.1 …
 * FILE.N); opened again when somebody else moved it away. A full disk is a state: what is in the buffer waits, what
 * does not fit into the buffer is counted. common/ownFile.h says which files are opened. One thread; times in seconds,
 * monotonic.
 */
#ifndef EBPFMON_LOGFILE_H
#define EBPFMON_LOGFILE_H

#include "export/shared/destination.h"

#define EBPFMON_FILE_BUFFER (256u << 10)

typedef struct {
    uint64_t maxBytes;    /* 0: not rotated for its size */
    double   maxAge;      /* s, 0: not rotated for its age */
    unsigned keep;        /* rotated files; 0: what was in the file is deleted */
} ebpfMonLogFileLimits;

typedef struct {
    ebpfMonDestination out;
    ebpfMonLogFileLimits limits;
    int      fd;          /* -1: not open */
    int      regular;
    uint64_t dev, ino;
    uint64_t size;
    double   begun;       /* when it was made */
    double   checkAt;     /* when to see whether the name still leads to it */
    double   rotateAt;    /* not before: it could not be renamed the last time */
    double   since;       /* when the oldest line in buf came */
    size_t   len;         /* bytes of buf to be written */
    char     buf[EBPFMON_FILE_BUFFER];
} ebpfMonLogFile;

/* Opens it. If that fails, the destination is in trouble and is tried again later. NULL without memory. */
ebpfMonLogFile *ebpfMonLogFileOpen(const char *path, const ebpfMonLogFileLimits *limits, double now);

/* A line without its line feed. 0, or -1: the line is lost, and counted. */
int ebpfMonLogFileAdd(ebpfMonLogFile *f, const char *line, size_t len, double now);

/* To be called several times a second: writes what has waited, tries again, rotates by age. */
void ebpfMonLogFileTick(ebpfMonLogFile *f, double now);

void ebpfMonLogFileRotate(ebpfMonLogFile *f, double now);

/* Writes what can be written; counts the rest as lost. The caller reads the counts, then frees the memory. */
void ebpfMonLogFileClose(ebpfMonLogFile *f, double now);

#endif
