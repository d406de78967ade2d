/* SPDX-License-Identifier: BSD-3-Clause */
/* What operators and autosave write into the inputs of the filter: pieces, each an input's number and its text. */
#include <math.h>

#include "fuzz.h"
#include "record/filterInputs.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonFilter filter = ebpfMonFilterDefault, other = ebpfMonFilterDefault;
    char why[160], line[200];
    const uint8_t *piece;
    size_t length;
    unsigned input;

    while (fuzzNextPiece(&data, &size, &input, &piece, &length)) {
        char *text = fuzzCopyText(piece, length);

        if (ebpfMonFilterParse(&filter, input % EBPFMON_FILTER_INPUTS, text, why, sizeof(why)))
            FUZZ_CHECK(why[0] && strlen(why) < sizeof(why));
        if (ebpfMonFilterCheck(&filter, why, sizeof(why)) == 0) {
            FUZZ_CHECK(filter.sample >= 1 && isfinite(filter.slowUs) && filter.slowUs >= 0);
            FUZZ_CHECK(filter.budget >= 0 && filter.budget <= 100 && (unsigned)filter.level < ebpfMonLevelCount);
            ebpfMonFilterFormat(&filter, line, sizeof(line));
            ebpfMonFilterWantsPut(&filter, text, "VAL", text, "operator");
            ebpfMonFilterCopyInputs(&other, &filter, EBPFMON_FILTER_ALL);
        }
        free(text);
    }
}
