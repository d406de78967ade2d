/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that threads share: which words are points, and how it was at the begin. */
#ifndef EXPLORE_MEMORY_H
#define EXPLORE_MEMORY_H

/* All of it is zeros, and no word is a point. */
void memoryBegin(void);

/* As it is now it is at the begin of each run. */
void memoryKeep(void);
void memoryRestore(void);

/* Takes what was learned since. Returns the number of words that are points. */
unsigned memoryLearn(void);

/* Nonzero: there are more of them than were taken. */
int memoryHasLearned(void);

/* Prints the name of what is there. */
void memoryTell(const void *at);

/* --- explore.c */
int exploreIsLooking(void); /* nonzero: it looks if a thread can go on */
void exploreOffer(const char *what, const void *at, const void *pc); /* another thread may go on here */

#endif
