/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints pages for scripts: plain text without escape sequences. */
#ifndef TOPBATCH_H
#define TOPBATCH_H

#include "topPage.h"

/* Prints "count" pages, one each "seconds". For each page it waits until all values are there, but at most
 * "patience" seconds. "rows": rows of each table at most. Returns the exit code: 0, or 1: the monitor did not
 * answer. */
int topBatchRun(topData *data, topLook *look, unsigned count, double seconds, double patience, unsigned rows);

#endif
