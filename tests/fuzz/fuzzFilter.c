/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is what operators and autosave write into the inputs of the filter. Each piece is the number of an input
 * and its text. A number from 64 on means the input of the aSub record: a type, then the elements. */
#define USE_TYPED_RSET
#define USE_TYPED_DSET
#include <math.h>

#include <aSubRecord.h>
#include <dbFldTypes.h>

#include "access/guard.h"
#include "fuzz.h"
#include "record/filterInputs.h"

#define NUMBERS 64

/* Nothing here writes to a record, so the guard, with the server behind it, stays out. */
void ebpfMonGuardKeep(struct dbCommon *prec)
{
}

int ebpfMonGuardSetBack(struct dbCommon *prec)
{
    return 0;
}

static void use(ebpfMonFilter *filter, const char *text)
{
    ebpfMonFilter other = ebpfMonFilterDefault;
    char why[160], line[200];

    if (ebpfMonFilterCheck(filter, why, sizeof(why)))
        return;
    FUZZ_CHECK(filter->sample >= 1 && isfinite(filter->slowUs) && filter->slowUs >= 0);
    FUZZ_CHECK(filter->budget >= 0 && filter->budget <= 100 && (unsigned)filter->level < ebpfMonLevelCount);
    ebpfMonFilterFormat(filter, line, sizeof(line));
    ebpfMonFilterWantsPut(filter, text, "VAL", text, "operator");
    ebpfMonFilterCopyInputs(&other, filter, EBPFMON_FILTER_ALL);
}

/* Sets an input of the record. It has the size that Base allocates. */
static void setInput(aSubRecord *prec, unsigned in, const uint8_t *piece, size_t length)
{
    unsigned type = length ? piece[0] % (DBF_ENUM + 1) : DBF_STRING;
    size_t each = type == DBF_STRING ? MAX_STRING_SIZE : type == DBF_CHAR || type == DBF_UCHAR ? 1 : 8;
    size_t count = length > each ? (length - 1) / each : 1, n = length ? length - 1 : 0;
    char *bytes = calloc(count, each);

    if (n)
        memcpy(bytes, piece + 1, n < count * each ? n : count * each);
    if (type == DBF_STRING) /* as dbPut ends each string with a NUL */
        for (size_t i = 1; i <= count; i++)
            bytes[i * each - 1] = 0;
    free((&prec->a)[in]);
    (&prec->a)[in] = bytes;
    (&prec->fta)[in] = (epicsEnum16)type;
    (&prec->nea)[in] = (&prec->noa)[in] = (epicsUInt32)count;
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonFilter filter = ebpfMonFilterDefault;
    aSubRecord prec = { .name = "FILTER" };
    const uint8_t *piece;
    size_t length;
    unsigned kind;
    char why[160];

    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++)
        setInput(&prec, in, NULL, 0);
    while (fuzzNextPiece(&data, &size, &kind, &piece, &length)) {
        char *text = fuzzCopyText(piece, length);

        if (kind >= NUMBERS)
            setInput(&prec, kind % EBPFMON_FILTER_INPUTS, piece, length);
        else if (ebpfMonFilterParse(&filter, kind % EBPFMON_FILTER_INPUTS, text, why, sizeof(why)))
            FUZZ_CHECK(why[0] && strlen(why) < sizeof(why));
        use(&filter, text);
        free(text);
    }
    if (ebpfMonFilterReadInputs(&prec, &filter, why, sizeof(why)) == 0)
        use(&filter, "A:B");
    for (unsigned in = 0; in < EBPFMON_FILTER_INPUTS; in++)
        free((&prec.a)[in]);
}
