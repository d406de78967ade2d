/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user part does with the tables and the probes, in its order: ebpfMonSup/watch (governor.c, recordTables.c,
 * recordSweeps.c, sweeps.c, closureTable.c, recordMarks.c). The functions run in setUp, or as a thread of a scene.
 * Differences: no record is counted by the trap, each record is processed by one link at most, and passes can always be
 * watched.
 */
#ifndef EXPLORE_USERPART_H
#define EXPLORE_USERPART_H

#include <stdint.h>

#define USER_COUNTS 1 /* levels */
#define USER_CHAINS 2

/* After the IOC was made. "isOneCpu": see helpersMakeTables. */
void userMake(int isOneCpu);

void userBeginChains(int level);  /* watches chains, from nothing, or from another level */
void userBeginPasses(void);       /* watches passes, too, and then instead */
void userEndPasses(void);         /* back to chains */
void userEnd(void);               /* removes all probes */
void userSetTurn(int isTimed);    /* level chains: a turn begins or ends */

/* In setUp: passes have been watched for long; for a second; there was a put after which the last record of a stretch
 * may not tell of all. */
void userLetTimePass(void);
void userLetLittleTimePass(void);
void userDoubt(void);

/* Waits until the forward link of the record is another one, and brings that into the tables. */
void userFollowLink(unsigned index);

/* Waits until a put that may move records is over, and reads the lists again. */
void userFollowLists(void);

/* As the user part reads counts: looks for marks, and returns the count of a record. */
void userReadMarks(void);
uint64_t userCount(unsigned index);
int userIsMarked(unsigned index);

/* Fails if a word of the tables is busy although nobody is there. */
void userCheckIdle(void);

/* Fails if so many runs of programs are not what the tables say. Only with one CPU. */
void userCheckTraps(uint64_t traps);

#endif
