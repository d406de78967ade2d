/* SPDX-License-Identifier: BSD-3-Clause */
/* One JSON object in one line: numbers, texts that are not UTF-8, buffers that are too small. */
#include <math.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "export/shared/jsonGen.h"

static char text[512];

static void testNumbers(void)
{
    char digits[40];

    testDiag("numbers");
    testOk1(ebpfMonJsonIsNumber("-0.5e-07", 8) && ebpfMonJsonIsNumber("0", 1) && ebpfMonJsonIsNumber("10", 2));
    testOk1(!ebpfMonJsonIsNumber("01", 2) && !ebpfMonJsonIsNumber("0x10", 4) && !ebpfMonJsonIsNumber("1.", 2) &&
            !ebpfMonJsonIsNumber("nan", 3) && !ebpfMonJsonIsNumber("", 0) && !ebpfMonJsonIsNumber("1e", 2) &&
            !ebpfMonJsonIsNumber("-", 1) && !ebpfMonJsonIsNumber("1 ", 2));
    ebpfMonJsonFormatNumber(0.1, digits, sizeof(digits));
    testOk(strcmp(digits, "0.1") == 0, "%s", digits);
    ebpfMonJsonFormatNumber(0.1 + 0.2, digits, sizeof(digits));
    testOk(strcmp(digits, "0.30000000000000004") == 0, "%s", digits);
}

/* Some of everything. Returns its length. */
static size_t makeObject(ebpfMonJson *j, char *buf, size_t size)
{
    if (ebpfMonJsonBegin(j, buf, size))
        return 0;
    ebpfMonJsonAddText(j, "a", "b\xff\n\"");
    ebpfMonJsonAddText(j, "empty", "");
    ebpfMonJsonAddTextIfAny(j, "none", "");
    ebpfMonJsonAddInteger(j, "i", -5);
    ebpfMonJsonAddNumber(j, "n", "1.50", 1.5);
    ebpfMonJsonAddNumber(j, "hex", "0x10", 16);
    ebpfMonJsonAddNumber(j, "nan", NULL, NAN);
    ebpfMonJsonAddBool(j, "yes", 1);
    ebpfMonJsonOpenList(j, "list");
    ebpfMonJsonWriteInteger(j, 1);
    ebpfMonJsonOpenObject(j, NULL);
    ebpfMonJsonCloseObject(j);
    ebpfMonJsonCloseList(j);
    return ebpfMonJsonEnd(j);
}

static void testObjects(void)
{
    static const char wanted[] = "{\"a\":\"b\\\\xff\\\\x0a\\\"\",\"empty\":\"\",\"i\":-5,\"n\":1.50,\"hex\":16,"
        "\"nan\":\"Nan\",\"yes\":true,\"list\":[1,{}]}";
    ebpfMonJson j = {0}, other = {0};
    unsigned fitted = 0;
    size_t len;

    testDiag("objects");
    len = makeObject(&j, text, sizeof(text));
    testOk(len == strlen(wanted) && memcmp(text, wanted, len) == 0, "%.*s", (int)len, text);
    for (size_t size = 0; size < strlen(wanted); size++)
        fitted += makeObject(&j, text, size) != 0;
    testOk(fitted == 0, "%u buffers are too small", fitted);
    len = makeObject(&j, text, strlen(wanted));
    testOk(len == strlen(wanted) && memcmp(text, wanted, len) == 0, "a buffer that fits exactly, after those");
    testOk1(ebpfMonJsonBegin(&j, text, sizeof(text)) == 0 && ebpfMonJsonBegin(&other, text + 256, 256) == 0);
    ebpfMonJsonAddInteger(&other, "o", 2);
    ebpfMonJsonOpenList(&j, "open");
    len = ebpfMonJsonEndOpen(&j);
    testOk(len == 9 && memcmp(text, "{\"open\":[", 9) == 0, "an object that is not closed: %.*s", (int)len, text);
    len = ebpfMonJsonEnd(&other);
    testOk(len == 7 && memcmp(text + 256, "{\"o\":2}", 7) == 0, "two texts at a time: %.*s", (int)len, text + 256);
    ebpfMonJsonFree(&j);
    ebpfMonJsonFree(&other);
    ebpfMonJsonFree(&other);
    testOk(makeObject(&j, text, sizeof(text)) == strlen(wanted), "a new one after the old one was freed");
    ebpfMonJsonFree(&j);
}

MAIN(testJsonGen)
{
    testPlan(0);
    testNumbers();
    testObjects();
    return testDone();
}
