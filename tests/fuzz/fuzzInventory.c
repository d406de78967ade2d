/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is two inventories, which a user compares. The first byte says where the second inventory begins. */
#include "common/text.h"
#include "inventory/inventoryDiff.h"
#include "fuzz.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonInventoryDifference difference;
    ebpfMonTextReport *report;
    size_t half;

    if (size < 1)
        return;
    half = (size - 1) * data[0] / 256;
    report = ebpfMonTextReportNew();
    if (ebpfMonInventoryDiffTexts((const char *)data + 1, half, (const char *)data + 1 + half, size - 1 - half, "*",
                                  report, &difference) == 0)
        for (const char *line = ebpfMonTextReportGetText(report); *line; line++) /* because it is shown on a terminal */
            FUZZ_CHECK(*line == '\n' || !ebpfMonTextIsControl(*line));
    ebpfMonTextReportFree(report);
}
