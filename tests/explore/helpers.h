/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the programs, for what the user part writes and reads. */
#ifndef EXPLORE_HELPERS_H
#define EXPLORE_HELPERS_H

#include <stdint.h>

#include "ebpfMonTable.h"

#define HELPERS_TGID 1000
#define RECORDS_MAX 32 /* slots; there are twice as many places in the table of closures … */
#define PLACES_MAX  (8 * RECORDS_MAX)

/* Makes all tables, empty. "isOneCpu": all threads run on one CPU, and use the same elements of tables by CPU. */
void helpersMakeTables(int isOneCpu);

extern struct ebpfMonRecConf *helpersConf;
extern struct ebpfMonRecState *helpersState;
extern uint32_t *helpersClosure;

/* An element of a table by key; makes it if it is not there. Only for setUp and for checks. */
void *helpersElement(void *table, const void *key);

/* Calls "look" for each element. */
void helpersForEach(void *table, void (*look)(const void *key, void *value));

#endif
