/* SPDX-License-Identifier: BSD-3-Clause */
/* Values as texts: by type and byte order, states by their text, and what does not fit. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "model/put.h"
#include "put/valueText.h"
#include "fakeIoc.h"

static char text[EBPFMON_TEXT_SIZE];

static int isText(const char *want)
{
    if (strcmp(text, want) == 0)
        return 1;
    testDiag("\"%s\", not \"%s\"", text, want);
    return 0;
}

static const char *formatBytes(int type, long count, const void *data, uint32_t len, int network)
{
    ebpfMonValue v = { .data = data, .len = len, .type = type, .size = 40, .count = count, .network = network };

    ebpfMonValueTextFormat(NULL, NULL, 0, &v, text, sizeof(text));
    return text;
}

#define FORMAT(type, ...) formatBytes(type, 1, &(__VA_ARGS__), sizeof(__VA_ARGS__), 0)

static void testNumbers(void)
{
    static const uint8_t big[] = { 0x12, 0x34, 0x56, 0x78 }, one[] = { 0x3f, 0xf0, 0, 0, 0, 0, 0, 0 };

    testDiag("Numbers");
    FORMAT(ebpfMonDbfChar, (int8_t){ -3 });
    testOk1(isText("-3"));
    FORMAT(ebpfMonDbfUchar, (uint8_t){ 253 });
    testOk1(isText("253"));
    FORMAT(ebpfMonDbfShort, (int16_t){ -12345 });
    testOk1(isText("-12345"));
    FORMAT(ebpfMonDbfUlong, (uint32_t){ 4294967295u });
    testOk1(isText("4294967295"));
    FORMAT(ebpfMonDbfInt64, (int64_t){ INT64_MIN });
    testOk1(isText("-9223372036854775808"));
    FORMAT(ebpfMonDbfUint64, (uint64_t){ UINT64_MAX });
    testOk1(isText("18446744073709551615"));
    FORMAT(ebpfMonDbfFloat, (float){ 0.1f });
    testOk(isText("0.1"), "a float has its shortest text");
    FORMAT(ebpfMonDbfDouble, (double){ 0.1 });
    testOk(isText("0.1"), "… and so has a double");
    FORMAT(ebpfMonDbfDouble, (double){ 1.0 / 3 });
    testOk(strtod(text, NULL) == 1.0 / 3, "the same number is read again");
    FORMAT(ebpfMonDbfDouble, (double){ 0.0 / 0.0 });
    testOk1(isText("NaN"));
    formatBytes(ebpfMonDbfLong, 1, big, 4, 1);
    testOk(isText("305419896"), "a big-endian value is read");
    formatBytes(ebpfMonDbfDouble, 1, one, 8, 1);
    testOk1(isText("1"));
    formatBytes(ebpfMonDbfLong, 1, big, 3, 0);
    testOk(isText("?"), "a value with missing bytes has no text");
    formatBytes(ebpfMonDbfInlink, 1, big, 4, 0);
    testOk(isText("?"), "a type that has no values has no text");
}

static void testStrings(void)
{
    char longText[600];
    ebpfMonValue v = {.data = (const uint8_t *)longText, .len = sizeof(longText), .type = ebpfMonDbfChar, .count = 600};
    char small[8];

    testDiag("Texts");
    formatBytes(ebpfMonDbfString, 1, "12 \x1b[31m\n", 40, 0);
    testOk(isText("12 \\x1b[31m\\x0a"), "control characters are visible");
    formatBytes(ebpfMonDbfString, 1, "abc", 2, 0);
    testOk(isText("ab"), "a text has what was sent of it");
    formatBytes(ebpfMonDbfUchar, 6, "Beam\0x", 6, 0);
    testOk(isText("Beam"), "a long string is read");
    formatBytes(ebpfMonDbfUchar, 100, "Beam", 4, 0);
    testOk(isText("Beam..."), "… with more characters sent than kept");
    formatBytes(ebpfMonDbfUchar, 3, "\1\2\3", 3, 0);
    testOk(isText("[3] 1 2 3"), "a value without bytes has no text");
    memset(longText, 'x', sizeof(longText));
    ebpfMonValueTextFormat(NULL, NULL, 0, &v, small, sizeof(small));
    testOk(strcmp(small, "xxxx...") == 0, "a long text is cut: %s", small);
}

static void testArrays(void)
{
    static int32_t n[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };

    testDiag("Arrays");
    formatBytes(ebpfMonDbfLong, 3, n, 12, 0);
    testOk1(isText("[3] 1 2 3"));
    formatBytes(ebpfMonDbfLong, 20, n, 80, 0);
    testOk1(isText("[20] 1 2 3 4 5 6 7 8 ..."));
    formatBytes(ebpfMonDbfLong, 1000, n, 8, 0);
    testOk(isText("[1000] 1 2 ..."), "more elements than were read are marked");
    formatBytes(ebpfMonDbfLong, 0, n, 0, 0);
    testOk1(isText("[0]"));
    formatBytes(ebpfMonDbfString, 2, (char[80]){ "a" }, 80, 0);
    testOk1(isText("[2] a "));
}

static void formatState(unsigned rec, const char *field, int type, uint16_t index)
{
    ebpfMonValue v = { .data = (const uint8_t *)&index, .len = 2, .type = type, .size = 2, .count = 1 };

    ebpfMonValueTextFormat(fake.t, fakeField(rec, field), fakeAddress(rec), &v, text, sizeof(text));
}

static void testStates(void)
{
    ebpfMonValue v = { .data = (const uint8_t *)"1", .len = 2, .type = ebpfMonDbfString, .size = 40, .count = 1 };

    testDiag("States");
    formatState(FAKE_AO, "SCAN", ebpfMonDbfMenu, 3);
    testOk1(isText(".1 second"));
    formatState(FAKE_AO, "SCAN", ebpfMonDbfMenu, 4);
    testOk(isText("4"), "a choice that the menu lacks is a number");
    formatState(FAKE_SEL, "VAL", ebpfMonDbfEnum, 1);
    testOk1(isText("Moving"));
    formatState(FAKE_SEL, "VAL", ebpfMonDbfShort, 0);
    testOk(isText("Idle"), "a menu that is sent as another type is a number");
    formatState(FAKE_SEL, "VAL", ebpfMonDbfEnum, 5);
    testOk(isText("5"), "a state without a text is a number");
    ebpfMonValueTextFormat(fake.t, fakeField(FAKE_SEL, "VAL"), fakeAddress(FAKE_SEL), &v, text, sizeof(text));
    testOk(isText("1"), "a text is not taken for the number of a state");
}

static void testGetNumber(void)
{
    double number = 0;
    int16_t s = -7;
    ebpfMonValue v = { .data = (const uint8_t *)&s, .len = 2, .type = ebpfMonDbfShort, .count = 1 };

    testDiag("A value as a number");
    testOk1(ebpfMonValueTextGetNumber(&v, &number) && number == -7);
    v.count = 2;
    testOk(!ebpfMonValueTextGetNumber(&v, &number), "an array is no number");
    v.count = 1;
    v.len = 1;
    testOk(!ebpfMonValueTextGetNumber(&v, &number), "a value that could not be read is no number");
    v.len = 2;
    v.type = ebpfMonDbfEnum;
    testOk(ebpfMonValueTextGetNumber(&v, &number) && number == 65529, "the index of an enum is unsigned");
    v.type = ebpfMonDbfString;
    testOk(!ebpfMonValueTextGetNumber(&v, &number), "a text is no number");
}

MAIN(testValueText)
{
    testPlan(36);
    fakeMake();
    fake.t->eventThread.reads = NULL; /* what is needed is read at once */
    testNumbers();
    testStrings();
    testArrays();
    testStates();
    testGetNumber();
    return testDone();
}
