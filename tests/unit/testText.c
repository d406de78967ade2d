/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of other people's programs: what is not valid UTF-8, what controls a terminal. testModel.c has what is cut. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/text.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

static void testUtf8(void)
{
    static const char *const hostile[] = {
        "a\x80z", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80",
    };
    static const char *const clean[] = {
        "a" R "z", R R, R R R, R R R R, R R, "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80",
    };
    static const struct { const char *text; unsigned length; } begins[] = {
        {"a", 1}, {"\x7f", 1}, {"\xc2\x80", 2}, {"\xdf\xbf", 2}, {"\xe0\xa0\x80", 3}, {"\xed\x9f\xbf", 3},
        {"\xf0\x90\x80\x80", 4}, {"\xf4\x8f\xbf\xbf", 4}, {"\x80", 0}, {"\xc1\xbf", 0}, {"\xe0\x9f\xbf", 0},
        {"\xf0\x8f\xbf\xbf", 0}, {"\xf5\x80\x80\x80", 0}, {"\xc3", 0}, {"\xe2\x82z", 0}, {"\xff", 0},
    };
    char text[64];

    testDiag("UTF-8");
    for (unsigned i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        ebpfMonUtf8Copy(text, sizeof(text), hostile[i]);
        testOk(strcmp(text, clean[i]) == 0, "UTF-8 %u", i);
    }
    for (unsigned i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        testOk(ebpfMonUtf8GetLength(begins[i].text) == begins[i].length, "sequence %u: %u bytes", i, begins[i].length);
    for (size_t size = 1; size <= 8; size++) {
        size_t len = ebpfMonUtf8Copy(text, size, "\xe2\x86\x92\xc3\xa9\x80");

        if (len >= size || len != strlen(text) || (len != 0 && len != 3 && len != 5 && len != 8))
            testFail("%u bytes in %u", (unsigned)len, (unsigned)size);
    }
    testOk(ebpfMonUtf8Copy(text, 9, "\xe2\x86\x92\xc3\xa9\x80") == 8, "what does not fit is left out whole");
}

static void testControls(void)
{
    char text[] = "a\x1b[2J\n\t\x7f\xc3\xa9";

    testDiag("control characters");
    ebpfMonTextRemoveControls(text);
    testOk(strcmp(text, "a [2J   \xc3\xa9") == 0, "%s", text);
    testOk1(ebpfMonTextIsControl('\0') && ebpfMonTextIsControl('\x1f') && ebpfMonTextIsControl('\x7f'));
    testOk1(!ebpfMonTextIsControl(' ') && !ebpfMonTextIsControl('~') && !ebpfMonTextIsControl('\x80'));
}

MAIN(testText)
{
    testPlan(0);
    testUtf8();
    testControls();
    return testDone();
}
