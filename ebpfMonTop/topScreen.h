/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal: pages drawn by ncurses, keys, and the loop that waits for both sides. */
#ifndef TOPSCREEN_H
#define TOPSCREEN_H

#include "topPage.h"

/* Shows the monitor until the user ends it. "seconds": between two pages at least, but after a key. Returns the exit code. */
int topScreenRun(topData *data, topLook *look, double seconds);

#endif
