/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsStdio.h>

#include "publish/stateText.h"

ebpfMonState ebpfMonStateFind(const ebpfMonStateInput *input, char *text, size_t size)
{
    if (input->trouble[0]) {
        epicsSnprintf(text, size, "%s", input->trouble);
        return ebpfMonDegraded;
    }
    if (input->troubledIocs > 1) {
        epicsSnprintf(text, size, "%s (and %u more: ebpfMonIocs)", input->firstTrouble, input->troubledIocs - 1);
        return ebpfMonDegraded;
    }
    if (input->troubledIocs) {
        epicsSnprintf(text, size, "%s", input->firstTrouble);
        return ebpfMonDegraded;
    }
    epicsSnprintf(text, size, "watching %u of %u IOC%s", input->watched, input->iocs, input->iocs == 1 ? "" : "s");
    return ebpfMonRunning;
}
