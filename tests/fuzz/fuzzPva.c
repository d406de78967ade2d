/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a recording of pvAccess, which unit/pvaDriver.h plays to the decoder: once with enough memory for all of
 * it, and once with little. */
#include "../unit/pvaDriver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ebpfMonWireLimits little = { .circuits = 1, .channels = 3, .keep = 200, .total = 32768 };
    struct ebpfMonCircuit circuit;
    int i;

    for (i = 0; i < 2; i++) {
        driverOpen(&circuit, NULL);
        if (i) {
            circuit.limits = little;
        }
        driverPlay(&circuit, data, size);
        driverClose(&circuit);
        if (circuit.stats.memory || circuit.stats.channels) {
            abort();
        }
    }
    return 0;
}
