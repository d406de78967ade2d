/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of lines. Whole lines are written, many at a time. The file is rotated by size, by age and on request (FILE,
 * FILE.1 … FILE.N). It is opened again if somebody has moved it away. If the disk is full, the lines in the buffer
 * wait, and lines that do not fit into the buffer are counted as lost. common/files.h tells which files are opened.
 * One thread; times are monotonic seconds.
 */
#ifndef EBPFMON_LOGFILE_H
#define EBPFMON_LOGFILE_H

#include "export/shared/destination.h"

#define EBPFMON_FILE_BUFFER (256u << 10)

typedef struct {
    uint64_t maxBytes;    /* 0: no rotation by size */
    double   maxAge;      /* s; 0: no rotation by age */
    unsigned keep;        /* number of rotated files that stay; 0: the old file is deleted */
} ebpfMonLogFileLimits;

typedef struct {
    ebpfMonDestination out;
    ebpfMonLogFileLimits limits;
    int      fd;          /* -1: not open */
    int      regular;
    uint64_t dev, ino;
    uint64_t size;
    double   begun;       /* time at which it was made */
    double   checkAt;     /* time of the next check that the name still means this file */
    double   rotateAt;    /* no rotation before this time, because the last one failed */
    double   since;       /* time at which the oldest line in buf came */
    size_t   len;         /* bytes in buf that are not written yet */
    char     buf[EBPFMON_FILE_BUFFER];
} ebpfMonLogFile;

/* Opens a file. If that fails, the destination is in trouble, and tries again later. NULL: no memory. */
ebpfMonLogFile *ebpfMonLogFileOpen(const char *path, const ebpfMonLogFileLimits *limits, double now);

/* Adds a line, without its line feed. 0; or -1: the line is lost, and counted. */
int ebpfMonLogFileAdd(ebpfMonLogFile *f, const char *line, size_t len, double now);

/* Call it several times a second: writes lines that have waited, tries again after trouble, rotates by age. */
void ebpfMonLogFileTick(ebpfMonLogFile *f, double now);

/* Rotates the file now, unless it is empty or cannot be written. */
void ebpfMonLogFileRotate(ebpfMonLogFile *f, double now);

/* Writes what can be written, and counts the rest as lost. Afterwards the caller reads the counts, and frees the
 * memory. */
void ebpfMonLogFileClose(ebpfMonLogFile *f, double now);

#endif
