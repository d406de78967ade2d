/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/functionTrial.h"

#define STRANGE_LEAST 3 /* fewer may be chance: a module with a record of its own that is in no database */

int ebpfMonFunctionTrialLook(ebpfMonFunctionTrial *trial, uint64_t strange, uint64_t counted)
{
    if (trial->verdict != ebpfMonFunctionsOpen)
        return 0;
    trial->strange += strange;
    if (trial->strange >= STRANGE_LEAST && trial->strange > counted)
        trial->verdict = ebpfMonFunctionsWrong;
    else if (counted)
        trial->verdict = ebpfMonFunctionsRight;
    return trial->verdict != ebpfMonFunctionsOpen;
}
