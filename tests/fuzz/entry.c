/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls the fuzzer, and limits its time. The limit is CPU time, because on a busy machine a harmless input may take
 * long by the clock. For an input that waits or never ends there is libFuzzer's -timeout, which is by the clock.
 */
#include <time.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not const: clang would take this number for the limit of each fuzzer. */
double ebpfMonFuzzSeconds __attribute__((weak)) = 0.5;

static double getCpuTime(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double longest = 0.05;
    double began = getCpuTime(), took;

    ebpfMonFuzzOne(data, size);
    took = getCpuTime() - began;
    if (took > longest) {
        longest = took;
        fprintf(stderr, "SLOWEST: %zu bytes took %.3f s of CPU time\n", size, took);
    }
    if (took > ebpfMonFuzzSeconds) {
        fprintf(stderr, "ERROR: %zu bytes took %.3f s of CPU time, more than %.3f s\n", size, took, ebpfMonFuzzSeconds);
        abort();
    }
    return 0;
}
