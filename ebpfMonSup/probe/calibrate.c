/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/childTrial.h"

#define CALLS 40  /* calls of a run; with a probe that steps, they take half a millisecond, so most runs are not
                   * interrupted */
#define RUNS  8
#define COLD_CALLS 9  /* calls on a cold CPU, one after each pause */
#define COLD_PAUSE 30 /* ms */

/* What a thread loses besides, because a trap and our programs replace its data and code in the caches of the CPU, and
 * their own were replaced meanwhile: a part of a trap each time, and of the programs' time. The loop that measures
 * a trap loses nothing of that. tests/bench/cost.py compares the sum with the truth. */
#define CACHES_TRAP    0.75
#define CACHES_PROGRAM 0.15

/* Two functions in assembler, because a compiler could choose other instructions. The kernel emulates the first
 * instruction of the first function, and single-steps that of the second. */
__asm__(".text\n"
        ".globl ebpfMonCalibrateFast\n"
        ".type ebpfMonCalibrateFast,%function\n"
#if defined(__x86_64__)
        "ebpfMonCalibrateFast: nop\n"
#else
        "ebpfMonCalibrateFast: b 1f\n"
        "1:\n"
#endif
        "    ret\n"
        ".globl ebpfMonCalibrateStepped\n"
        ".type ebpfMonCalibrateStepped,%function\n"
        "ebpfMonCalibrateStepped:\n"
#if defined(__x86_64__)
        "    xor %eax,%eax\n"
#else
        "    mov x0,#0\n"
#endif
        "    ret\n");
void ebpfMonCalibrateFast(void);
void ebpfMonCalibrateStepped(void);

/* The time of one call (ns). The shortest of RUNS counts, because other work on this CPU only adds time. */
static double measureCall(void (*fn)(void))
{
    double best = 0;

    for (int r = 0; r < RUNS; r++) {
        uint64_t begin = ebpfMonClockMonotonic();
        double ns;

        for (int i = 0; i < CALLS; i++)
            fn();
        ns = (double)(ebpfMonClockMonotonic() - begin) / CALLS;
        if (r == 0 || ns < best)
            best = ns;
    }
    return best;
}

static int compareTimes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The time of a call after a pause (ns): the median, because now and then other work is done meanwhile. */
static double measureColdCall(void (*fn)(void))
{
    uint64_t took[COLD_CALLS];

    for (int i = 0; i < COLD_CALLS; i++) {
        uint64_t begin;

        epicsThreadSleep(COLD_PAUSE / 1e3);
        begin = ebpfMonClockMonotonic();
        fn();
        took[i] = ebpfMonClockMonotonic() - begin;
    }
    qsort(took, COLD_CALLS, sizeof(took[0]), compareTimes);
    return (double)took[COLD_CALLS / 2];
}

/* 0 or errno. */
static int setProbe(ebpfMonProbe *probe, void (*fn)(void), int isReturn)
{
    char path[512];
    uint64_t offset;

    if (ebpfMonOwnCodeFind((uint64_t)(uintptr_t)fn, path, sizeof(path), &offset))
        return ENOENT;
    return ebpfMonProbeOn(probe, isReturn ? ebpfMonProgPutReturn : ebpfMonProgCamessage, path, &offset, 1, getpid(),
                          isReturn);
}

int ebpfMonProbeTry(int *inFolder)
{
    ebpfMonProbe probe;
    int err = setProbe(&probe, ebpfMonCalibrateFast, 0);

    if (err)
        return err;
    *inFolder = probe.inFolder != 0;
    ebpfMonProbeOff(&probe);
    return 0;
}

/* The same as "measure" does, with a probe on the function. 0: the kernel refused the probe. */
static double measureProbed(double (*measure)(void (*fn)(void)), void (*fn)(void), int isReturn)
{
    ebpfMonProbe probe;
    double ns;

    if (setProbe(&probe, fn, isReturn))
        return 0;
    ns = measure(fn);
    ebpfMonProbeOff(&probe);
    return ns;
}

void ebpfMonCalibrate(ebpfMonCosts *costs)
{
    double bare = measureCall(ebpfMonCalibrateFast);
    double fast = measureProbed(measureCall, ebpfMonCalibrateFast, 0) - bare;
    double ret = measureProbed(measureCall, ebpfMonCalibrateFast, 1) - bare;
    double stepped = measureProbed(measureCall, ebpfMonCalibrateStepped, 0) - bare;
    double cold = measureProbed(measureColdCall, ebpfMonCalibrateFast, 0) - bare - fast;

    costs->entryNs = 850;
    costs->returnNs = 650;
    costs->steppedNs = 12000;
    costs->coldNs = 15000;
    if (fast > 0)
        costs->entryNs = fast;
    if (ret > 0)
        costs->returnNs = ret;
    if (stepped > 0)
        costs->steppedNs = stepped;
    if (cold > 0)
        costs->coldNs = cold * (COLD_PAUSE + EBPFMON_COLD_HALF_NS / 1e6) / COLD_PAUSE;
}

double ebpfMonCostOfPrograms(uint64_t ns)
{
    return (double)ns * (1 + CACHES_PROGRAM);
}

double ebpfMonCostOf(const ebpfMonCosts *costs, const struct ebpfMonHits *hits, double stepped)
{
    double entry = costs->entryNs * (1 - stepped) + costs->steppedNs * stepped, caches = CACHES_TRAP * costs->entryNs;

    return (double)hits->n[EBPFMON_HIT_ENTRY] * (entry + caches) +
           (double)hits->n[EBPFMON_HIT_RETURN] * (costs->returnNs + caches) +
           (double)hits->n[EBPFMON_HIT_COLD] / EBPFMON_COLD_WHOLE * costs->coldNs +
           ebpfMonCostOfPrograms(hits->n[EBPFMON_HIT_NS]);
}
