/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "watch/turns.h"

#define ROUND_NS   10000000000ull
#define ROUND_MAX  3600e9 /* ns */
#define TURN_LEAST 250000000.0 /* ns: a shorter turn would miss most passes of all lists. With few percent, turns are
                                * rarer instead */
#define DEMAND_NS  20000000000ull  /* after a slow pass all chains are timed for so long, at first; twice as long
                                    * each further time … */
#define DEMAND_MAX 640000000000ull
#define DEMAND_END 10              /* … until so many times that long there was none */
#define REMEMBERED 120.0           /* s: half as much counts, from then on */

/* xorshift64 (Marsaglia, 2003) */
static uint64_t takeRandom(ebpfMonTurns *turns)
{
    turns->random ^= turns->random << 13;
    turns->random ^= turns->random >> 7;
    turns->random ^= turns->random << 17;
    return turns->random;
}

static uint64_t getTurnLength(double percent)
{
    double length = percent / 100 * (double)ROUND_NS;

    return (uint64_t)(percent > 0 && length < TURN_LEAST ? TURN_LEAST : length);
}

/* The pause before a turn is as long as the rest of its round on average. */
static void planTurn(ebpfMonTurns *turns, uint64_t now, double percent, uint64_t length)
{
    uint64_t round = percent > 0 ? (uint64_t)fmin((double)length * 100 / percent, ROUND_MAX) : ROUND_NS;
    uint64_t rest = round > length ? round - length : 0;

    turns->openAt = now + (rest ? takeRandom(turns) % (2 * rest) : 0);
    turns->closeAt = turns->openAt + length;
}

void ebpfMonTurnsBegin(ebpfMonTurns *turns, uint64_t now, uint64_t seed)
{
    memset(turns, 0, sizeof(*turns));
    turns->random = seed * 2654435761u + 1;
    turns->lookedAt = now;
}

static void noteSlow(ebpfMonTurns *turns, uint64_t now, uint64_t slow)
{
    if (turns->demand && now > turns->demandUntil + DEMAND_END * turns->demand)
        turns->demand = 0;
    if (slow == EBPFMON_TURNS_NO_DEMAND) {
        turns->demandUntil = 0;
        return;
    }
    if (slow == turns->slow)
        return;
    turns->slow = slow;
    turns->demand = turns->demand ? 2 * turns->demand : DEMAND_NS;
    if (turns->demand > DEMAND_MAX)
        turns->demand = DEMAND_MAX;
    turns->demandUntil = now + turns->demand;
}

static void addTime(ebpfMonTurns *turns, uint64_t now)
{
    double seconds = (double)(now - turns->lookedAt) / 1e9;

    turns->lookedAt = now;
    turns->all += seconds;
    if (turns->isOpen) {
        turns->timed += seconds;
        turns->timedEver += seconds;
    }
    if (turns->all > REMEMBERED) {
        turns->all /= 2;
        turns->timed /= 2;
    }
}

int ebpfMonTurnsLook(ebpfMonTurns *turns, uint64_t now, double percent, uint64_t slow)
{
    uint64_t length = getTurnLength(percent);
    int was = turns->isOpen;

    addTime(turns, now);
    noteSlow(turns, now, slow);
    if (percent != turns->percent || (now >= turns->closeAt && turns->percent > 0)) {
        planTurn(turns, now, percent, length);
        if (percent != turns->percent) {
            turns->openAt = now;
            turns->closeAt = now + length;
        }
        turns->percent = percent;
    }
    turns->isOpen = (now >= turns->openAt && now < turns->closeAt) || now < turns->demandUntil;
    return turns->isOpen != was;
}

static uint64_t findNextMoment(uint64_t at, uint64_t now, uint64_t next)
{
    return at > now && at < next ? at : next;
}

double ebpfMonTurnsWait(const ebpfMonTurns *turns, uint64_t now)
{
    uint64_t next = findNextMoment(turns->demandUntil, now, now + ROUND_NS);

    if (turns->percent > 0)
        next = findNextMoment(turns->openAt, now, findNextMoment(turns->closeAt, now, next));
    return (double)(next - now) / 1e9;
}

double ebpfMonTurnsShare(const ebpfMonTurns *turns)
{
    if (turns->isOpen && turns->percent >= 100)
        return 100;
    return turns->all > 0 ? 100 * turns->timed / turns->all : 0;
}

double ebpfMonTurnsTimed(const ebpfMonTurns *turns, uint64_t now)
{
    return turns->timedEver + (turns->isOpen && now > turns->lookedAt ? (double)(now - turns->lookedAt) / 1e9 : 0);
}

double ebpfMonTurnsExpect(const ebpfMonTurns *turns, uint64_t now)
{
    return now < turns->demandUntil ? 100 : turns->percent;
}
