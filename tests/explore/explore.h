/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the threads of a scene in all orders that are possible with a given number of preemptions.
 *
 * The threads are coroutines of one thread. Each access to memory that they share is a point at which another one may
 * go on. The compiler calls us there (-fsanitize=thread, see access.c). A run takes a list of choices; the next run
 * changes the last choice that has an alternative. So each order is run once, and any order can be run again.
 *
 * Only an access to a word that another thread uses, too, and that one of both writes, is such a point: to change
 * threads before any other access gives nothing new. Which words these are is learned from the runs.
 *
 * Memory is as it is with one CPU after the other: what a thread has written is seen by all.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stddef.h>
#include <stdint.h>

#define EXPLORE_THREADS_MAX 8

/* --- for scenes ------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *about;
    int preemptions; /* so many are tried in make check … */
    int most;        /* … and so many in make soak */
    void (*setUp)(void);
    void (*begin)(void); /* at the begin of each run */
    void (*check)(void); /* when all threads have ended; calls exploreFail if something is wrong */
} exploreScene;

extern const exploreScene exploreScenes[];
extern const unsigned exploreSceneCount;

/* Adds a thread to the scene; "comm" is its name. Returns its number. */
int exploreAddThread(const char *comm, void (*body)(void));

/* The number of the thread that runs; -1: none does. */
int exploreSelf(void);
const char *exploreComm(int thread);

/* Memory that threads share, of zeros. It is as setUp left it at the begin of each run. */
void *exploreAlloc(size_t size);

/* The same for much memory of which a run writes little. All that writes it must be compiled with -fsanitize=thread, or
 * call exploreAccess. */
void *exploreAllocTable(size_t size);

/* Nonzero: all of it is such memory. */
int exploreIsShared(const void *at, size_t size);

/* The present thread waits until this is nonzero. Other threads change what "isReady" reads. */
void exploreWait(int (*isReady)(void *), void *arg);

/* Others may go on here. */
void explorePoint(const char *what);

/* The present thread is about to use these bytes. */
void exploreAccess(const void *at, size_t size, int isWrite);

/* These bytes are not looked at: it does not matter who uses them first. */
void exploreIgnore(const void *at, size_t size);

/* Tells how the bytes are called in a report. The name has %u for the number of the element. */
void exploreName(const void *at, size_t size, size_t element, const char *name);

/* The run is over, and the scene has failed. */
void exploreFail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* A line for the report of a run that failed. */
void exploreNote(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ns; a later one with each call */
uint64_t exploreNow(void);

#endif
