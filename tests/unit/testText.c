/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/text.h"
#include "common/textReport.h"

/* --- Text --- */

/* common/text.h: the output is valid UTF-8 without invisible characters, with any input. */

static const struct {
    const char *what, *from, *to;
} corpus[] = {
    {"ASCII", "DEMO:LO 1 ~", "DEMO:LO 1 ~"},
    {"UTF-8 of 2, 3 and 4 bytes", "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x86\x92\xf0\x9f\x98\x80"},
    {"the first and the last of 2 bytes", "\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf"},
    {"the last before the surrogates, the first behind", "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
    {"U+10FFFD", "\xf4\x8f\xbf\xbd", "\xf4\x8f\xbf\xbd"},
    {"U+FFFD", "\xef\xbf\xbd", "\xef\xbf\xbd"},
    {"a backslash stays", "C:\\x9b\\", "C:\\x9b\\"},
    {"escape sequence", "a\x1b[2J", "a\\x1b[2J"},
    {"tab, line feed, DEL", "\t\n\r\x7f", "\\x09\\x0a\\x0d\\x7f"},
    {"C1: U+0085 and U+009B", "\xc2\x85\xc2\x9b", "\\xc2\\x85\\xc2\\x9b"},
    {"a lone byte", "a\x9bz", "a\\x9bz"},
    {"Latin-1", "gr\xfc\xdf", "gr\\xfc\\xdf"},
    {"overlong: 2, 3 and 4 bytes", "\xc0\xaf\xe0\x9f\xbf\xf0\x8f\xbf\xbf",
     "\\xc0\\xaf\\xe0\\x9f\\xbf\\xf0\\x8f\\xbf\\xbf"},
    {"surrogates", "\xed\xa0\x80\xed\xbf\xbf", "\\xed\\xa0\\x80\\xed\\xbf\\xbf"},
    {"beyond U+10FFFF", "\xf4\x90\x80\x80\xf5\x80\x80\x80\xff",
     "\\xf4\\x90\\x80\\x80\\xf5\\x80\\x80\\x80\\xff"},
    {"cut in the middle", "\xe2\x82", "\\xe2\\x82"},
    {"cut, then another", "\xe2\x82z\xc3", "\\xe2\\x82z\\xc3"},
    {"U+202E turns the text around", "abc\xe2\x80\xae" "cba", "abc\\xe2\\x80\\xae" "cba"},
    {"U+202A, U+2066, U+2069", "\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9",
     "\\xe2\\x80\\xaa\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
    {"U+200E, U+200F, U+061C", "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\xe2\\x80\\x8e\\xe2\\x80\\x8f\\xd8\\x9c"},
    {"U+2028, U+2029", "\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},
    {"byte order mark, zero width space", "\xef\xbb\xbf\xe2\x80\x8b", "\\xef\\xbb\\xbf\\xe2\\x80\\x8b"},
    {"soft hyphen, U+E0041", "\xc2\xad\xf3\xa0\x81\x81", "\\xc2\\xad\\xf3\\xa0\\x81\\x81"},
    {"noncharacters U+FFFE, U+FDD0, U+1FFFF", "\xef\xbf\xbe\xef\xb7\x90\xf0\x9f\xbf\xbf",
     "\\xef\\xbf\\xbe\\xef\\xb7\\x90\\xf0\\x9f\\xbf\\xbf"},
};

static void testCorpus(void)
{
    char text[128], again[128];

    testDiag("hostile texts");
    for (unsigned i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        int isSame = strcmp(corpus[i].from, corpus[i].to) == 0;

        testOk(!ebpfMonTextCopy(text, sizeof(text), corpus[i].from) && strcmp(text, corpus[i].to) == 0, "%s: %s",
               corpus[i].what, corpus[i].to);
        testOk1(!ebpfMonTextIsClean(corpus[i].from) == !isSame && ebpfMonTextIsClean(text));
        ebpfMonTextCopy(again, sizeof(again), text);
        testOk(strcmp(again, text) == 0, "… and nothing changes any more");
        strcpy(again, corpus[i].from);
        ebpfMonTextClean(again, sizeof(again));
        testOk(strcmp(again, corpus[i].to) == 0, "… in place");
    }
}

/* Another algorithm than in text.c: decodes, then looks at the classes of the characters. Nonzero if the text is
 * valid and all of it is visible. */
static int isReadable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s) {
        unsigned n = *s < 0x80 ? 0 : *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : *s >= 0xc2 ? 1 : 9;
        static const unsigned least[4] = {0, 0x80, 0x800, 0x10000};
        unsigned code = n == 0 ? *s : n == 9 ? 0 : *s & (0x3fu >> n);

        if (n == 9)
            return 0;
        for (unsigned i = 1; i <= n; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (s[i] & 0x3f);
        }
        if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) || code < 0x20 ||
            (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
            (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
            code == 0x61c || (code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef))
            return 0;
        s += n + 1;
    }
    return 1;
}

static void testEverySize(void)
{
    static const char text[] = "a\xc3\xa9\x9b\xe2\x86\x92\xf0\x9f\x98\x80\xe2\x80\xae" "end";
    char whole[64], cut[64];
    unsigned wrong = 0;

    testDiag("cut at every place");
    ebpfMonTextCopy(whole, sizeof(whole), text);
    for (size_t size = 1; size < sizeof(cut); size++) {
        int isCut = ebpfMonTextCopy(memset(cut, 'X', sizeof(cut)), size, text);
        size_t len = strnlen(cut, size), kept = len > 3 ? len - 3 : 0;

        if (len >= size || !isReadable(cut) || isCut != (strlen(whole) >= size) ||
            (isCut && (strncmp(cut, whole, kept) != 0 || strspn(cut + kept, ".") != len - kept)) ||
            (!isCut && strcmp(cut, whole) != 0) || (len && cut[kept ? kept - 1 : 0] == '\\')) {
            wrong++;
            testDiag("size %u: \"%s\"", (unsigned)size, cut);
        }
    }
    testOk(!wrong, "%u wrong", wrong);
    testOk(ebpfMonTextCopy(cut, 40, "012345678901234567890123456789012345\x9b" "a") && strlen(cut) == 39,
           "a CA string, an escape at its end: \"%s\"", cut);
    testOk(!ebpfMonTextCopy(cut, 40, "01234567890123456789012345678901234\x9b") && strlen(cut) == 39,
           "a text that fits is not cut: \"%s\"", cut);
    testOk1(ebpfMonTextCopy(cut, 0, "a") && !ebpfMonTextCopy(cut, 0, ""));
}

/* Sequences that are valid, nearly valid, and none. */
static void testRandomBytes(void)
{
    static const unsigned char begins[] = {0x00, 0x41, 0x7f, 0x80, 0x9b, 0xbf, 0xc0, 0xc2, 0xd8, 0xdf, 0xe0, 0xe2, 0xed,
                                           0xef, 0xf0, 0xf3, 0xf4, 0xf5, 0xff};
    unsigned wrong = 0, seed = 1;
    char from[64], to[4 * sizeof(from)], small[40];

    for (unsigned round = 0; round < 200000; round++) {
        size_t n = 1 + (seed >> 8) % (sizeof(from) - 1);

        for (size_t i = 0; i < n; i++) {
            seed = seed * 1103515245u + 12345u;
            from[i] = (char)((seed >> 16) % 2 ? begins[(seed >> 20) % sizeof(begins)] : 0x80 | (seed >> 20) % 64);
        }
        wrong += ebpfMonTextCopyBytes(to, sizeof(to), from, n) || !isReadable(to) || !ebpfMonTextIsClean(to);
        ebpfMonTextCopyBytes(small, sizeof(small), from, n);
        wrong += strlen(small) >= sizeof(small) || !isReadable(small);
    }
    testOk(!wrong, "200000 texts of random bytes: %u are not readable", wrong);
}

/* Each code point up to U+10FFFF. */
static void testEveryCharacter(void)
{
    unsigned wrong = 0, shown = 0;

    for (unsigned code = 1; code <= 0x10ffff; code++) {
        char utf8[5], to[17];
        size_t n = 0;

        if (code < 0x80) {
            utf8[n++] = (char)code;
        } else {
            unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;

            utf8[n++] = (char)(0xf0u << (3 - more) | code >> 6 * more);
            while (more--)
                utf8[n++] = (char)(0x80 | (code >> 6 * more & 0x3f));
        }
        utf8[n] = 0;
        ebpfMonTextCopy(to, sizeof(to), utf8);
        wrong += !isReadable(to) || (strcmp(to, utf8) != 0 && strlen(to) != 4 * n);
        shown += strcmp(to, utf8) == 0;
    }
    testOk(!wrong && shown > 1100000 && shown < 0x10ffff - 2048,
           "each character is shown or escaped: %u shown, %u wrong", shown, wrong);
}

static void testParts(void)
{
    char text[32];

    ebpfMonTextCopyBytes(text, sizeof(text), "abc\0def", 7);
    testOk(strcmp(text, "abc") == 0, "a terminator ends a text");
    ebpfMonTextCopyBytes(text, sizeof(text), "\xe2\x86\x92", 2);
    testOk(strcmp(text, "\\xe2\\x86") == 0, "what lies behind the terminator is not looked at: %s", text);
    ebpfMonTextCopyLines(text, sizeof(text), "a\nb\tc\n");
    testOk(strcmp(text, "a\nb\\x09c\n") == 0, "lines stay lines: %s", text);
    ebpfMonTextCopySpaces(text, sizeof(text), "{\r\n\ta: \x1b}\n");
    testOk(strcmp(text, "{\r\n\ta: \\x1b}\n") == 0, "spaces of any kind stay: %s", text);
    strcpy(text, "\x1b\x1b\x1b\x1b");
    ebpfMonTextClean(text, 8);
    testOk(strcmp(text, "\\x1b...") == 0, "a text that is made harmless in place is cut to its room: %s", text);
    testOk1(ebpfMonTextIsControl('\0') && ebpfMonTextIsControl('\x1f') && ebpfMonTextIsControl('\x7f'));
    testOk1(!ebpfMonTextIsControl(' ') && !ebpfMonTextIsControl('~') && !ebpfMonTextIsControl('\x80'));
}

static void runText(void)
{
    testCorpus();
    testEverySize();
    testRandomBytes();
    testEveryCharacter();
    testParts();
}

/* --- TextReport --- */

/* common/textReport.h */

static void testTable(void)
{
    static const ebpfMonReportColumn columns[] = {{"name", -6}, {"n", 4}, {"note", 0}};
    ebpfMonTextReport *r = ebpfMonTextReportNew();

    testOk1(ebpfMonTextReportGetText(r)[0] == 0);
    ebpfMonTextReportAddCell(r, "no table"); /* nothing happens */
    ebpfMonTextReportAdd(r, "%s %d\n", "line", 1);
    ebpfMonTextReportBeginTable(r, columns, 3);
    ebpfMonTextReportAddCell(r, "a");
    ebpfMonTextReportAddCell(r, "%d", 12);
    ebpfMonTextReportAddCell(r, "%s", "ok");
    ebpfMonTextReportAddCell(r, "longer than its column");
    ebpfMonTextReportAddCell(r, "%d", 12345);
    ebpfMonTextReportAddCell(r, "%s", "");
    testOk(strcmp(ebpfMonTextReportGetText(r),
                  "line 1\nname      n note\na        12 ok\nlonger than its column 12345 \n") == 0,
           "%s", ebpfMonTextReportGetText(r));
    ebpfMonTextReportPrint(r);
}

static void testLong(void)
{
    static const ebpfMonReportColumn columns[] = {{"i", 9}};
    ebpfMonTextReport *r = ebpfMonTextReportNew();
    char line[12];
    unsigned wrong = 0;

    ebpfMonTextReportBeginTable(r, columns, 1);
    for (int i = 0; i < 5000; i++)
        ebpfMonTextReportAddCell(r, "%d", i);
    for (int i = 0; i < 5000; i++) {
        snprintf(line, sizeof(line), "%9d\n", i);
        wrong += strncmp(ebpfMonTextReportGetText(r) + 10 * (i + 1), line, 10) != 0;
    }
    testOk(!wrong && strlen(ebpfMonTextReportGetText(r)) == 50010, "a long report is whole: %u wrong", wrong);
    ebpfMonTextReportFree(r);
    ebpfMonTextReportFree(NULL);
    ebpfMonTextReportAdd(NULL, "without memory");
    testOk1(strcmp(ebpfMonTextReportGetText(NULL), "") == 0);
}

static void runTextReport(void)
{
    testTable();
    testLong();
}

MAIN(testText)
{
    testPlan(0);
    runText();
    runTextReport();
    return testDone();
}
