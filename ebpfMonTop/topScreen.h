/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal: draws pages with ncurses, reads keys, and has the loop that waits for keys and values. */
#ifndef EBPFMON_TOPSCREEN_H
#define EBPFMON_TOPSCREEN_H

#include "topPage.h"

/* Shows the monitor until the user ends. "seconds": least time between two pages; after a key a page is drawn at
 * once. Returns the exit code. */
int topScreenRun(topData *data, topLook *look, double seconds);

#endif
