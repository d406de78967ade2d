/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a value, which is formatted as text: its type, byte order, size of an element, count, and its bytes. */
#include "common/text.h"
#include "fuzz.h"
#include "model/put.h"
#include "put/valueText.h"

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    ebpfMonValue v = { 0 };
    char text[EBPFMON_TEXT_SIZE], small[8];
    double number;
    uint8_t *bytes;

    if (size < 12)
        return;
    v.type = (int)(data[0] % 20) - 1;
    v.network = data[1] & 1;
    v.size = (int16_t)(data[2] << 8 | data[3]);
    memcpy(&v.count, data + 4, sizeof(v.count));
    if (data[1] & 2)
        v.count &= 0xff;
    bytes = malloc(size - 12 ? size - 12 : 1);
    memcpy(bytes, data + 12, size - 12);
    v.data = bytes;
    v.len = (uint32_t)(size - 12);
    ebpfMonValueTextFormat(NULL, NULL, 0, &v, text, sizeof(text));
    FUZZ_CHECK(strlen(text) < sizeof(text) && ebpfMonTextIsClean(text));
    ebpfMonValueTextFormat(NULL, NULL, 0, &v, small, sizeof(small));
    ebpfMonValueTextGetNumber(&v, &number);
    free(bytes);
}
