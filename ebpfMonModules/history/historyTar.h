/* SPDX-License-Identifier: BSD-3-Clause */
/* What belongs to a frozen history, as one file that everybody's tools open: a tar (POSIX.1, ustar). */
#ifndef EBPFMON_HISTORYTAR_H
#define EBPFMON_HISTORYTAR_H

#include <stddef.h>
#include "common/worker.h"

/* The first one. Readers take it out of the file by themselves. */
#define EBPFMON_HISTORY_IN_TAR "history.sqlite"

/* Makes "file" of those of "folder" that "names" has and that are there, in this order; NULL ends them. Within the tar
 * they are in the folder "title". 0, or -1: "why" says what is wrong. */
int ebpfMonHistoryTarWrite(const char *file, const char *title, const char *folder, const char *const *names,
                           ebpfMonWorker *worker, char *why, size_t size);

/* Copies the history of a tar to a new file, whose path "copy" gets, and which the caller removes. 0: it is there; 1:
 * "file" is no such tar, or cannot be read; -1: "why" says what is wrong. */
int ebpfMonHistoryTarCopy(const char *file, char *copy, size_t copySize, char *why, size_t size);

#endif
