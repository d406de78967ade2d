/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages printed for scripts: plain text, no escape sequences. */
#ifndef TOPBATCH_H
#define TOPBATCH_H

#include "topPage.h"

/* Prints "count" pages, "seconds" apart. Each waits at most "patience" seconds until all values are there. Returns the exit
 * code: 1 if the monitor did not answer. */
int topBatchRun(topData *data, const topLook *look, unsigned count, double seconds, double patience, unsigned rows);

#endif
