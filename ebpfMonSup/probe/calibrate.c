/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "common/clock.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/ownCode.h"

#define CALLS 200 /* calls of a run; with a probe that steps, they take half a millisecond, so most runs are not
                   * interrupted */
#define RUNS  8

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

/* As measureCall, with a probe on the function. 0: the kernel refused the probe. */
static double measureProbed(void (*fn)(void), int isReturn)
{
    ebpfMonProbe probe;
    double ns;

    if (setProbe(&probe, fn, isReturn))
        return 0;
    ns = measureCall(fn);
    ebpfMonProbeOff(&probe);
    return ns;
}

void ebpfMonCalibrate(ebpfMonCosts *costs)
{
    double bare = measureCall(ebpfMonCalibrateFast), fast = measureProbed(ebpfMonCalibrateFast, 0) - bare;
    double ret = measureProbed(ebpfMonCalibrateFast, 1) - bare;
    double stepped = measureProbed(ebpfMonCalibrateStepped, 0) - bare;

    costs->entryNs = 850;
    costs->returnNs = 650;
    costs->steppedNs = 12000;
    if (fast > 0)
        costs->entryNs = fast;
    if (ret > 0)
        costs->returnNs = ret;
    if (stepped > 0)
        costs->steppedNs = stepped;
}

double ebpfMonCostOf(const ebpfMonCosts *costs, const struct ebpfMonHits *hits, double stepped)
{
    double entry = costs->entryNs * (1 - stepped) + costs->steppedNs * stepped, caches = CACHES_TRAP * costs->entryNs;

    return (double)hits->n[EBPFMON_HIT_ENTRY] * (entry + caches) +
           (double)hits->n[EBPFMON_HIT_RETURN] * (costs->returnNs + caches) +
           (double)hits->n[EBPFMON_HIT_NS] * (1 + CACHES_PROGRAM);
}
