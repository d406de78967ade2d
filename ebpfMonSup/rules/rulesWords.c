/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <epicsString.h>

#include "common/text.h"
#include "model/put.h"
#include "rules/rulesWords.h"

static int readDay(const char **text)
{
    static const char days[7][4] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

    for (int d = 0; d < 7; d++) {
        if (epicsStrnCaseCmp(*text, days[d], 3) == 0) {
            *text += 3;
            return d;
        }
    }
    return -1;
}

int ebpfMonRulesReadDays(const char *text, uint8_t *days)
{
    *days = 0;
    for (;;) {
        int first = readDay(&text), last = first;

        if (first < 0)
            return -1;
        if (*text == '-') {
            text++;
            last = readDay(&text);
            if (last < 0)
                return -1;
        }
        for (int d = first; ; d = (d + 1) % 7) {
            *days |= (uint8_t)(1u << d);
            if (d == last)
                break;
        }
        if (!*text)
            return 0;
        if (*text++ != ',')
            return -1;
    }
}

int ebpfMonRulesReadClock(const char *t, uint16_t *minute)
{
    int hours, minutes;

    if (strlen(t) != 5 || !isdigit((unsigned char)t[0]) || !isdigit((unsigned char)t[1]) || t[2] != ':' ||
        !isdigit((unsigned char)t[3]) || !isdigit((unsigned char)t[4]))
        return -1;
    hours = (t[0] - '0') * 10 + t[1] - '0';
    minutes = (t[3] - '0') * 10 + t[4] - '0';
    if (minutes > 59 || hours * 60 + minutes > 24 * 60)
        return -1;
    *minute = (uint16_t)(hours * 60 + minutes);
    return 0;
}

int ebpfMonRulesReadOrigin(const char *text, size_t length)
{
    for (int through = 0; through < ebpfMonByCount; through++) {
        const char *known = ebpfMonThroughName((ebpfMonThrough)through);

        if (strlen(known) == length && epicsStrnCaseCmp(known, text, length) == 0)
            return through;
    }
    return -1;
}

/* Of a number, or a key without quotes. */
static int isInWord(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("+-._$", c));
}

size_t ebpfMonRulesFindToken(const char *text, size_t length, size_t end)
{
    size_t i;
    char last;

    if (!end || end > length)
        return end ? length : 0;
    i = end - 1;
    last = text[i];
    if (last == '"' || last == '\'') {
        while (i > 0) {
            size_t slashes = 0;

            if (text[--i] != last)
                continue;
            while (slashes < i && text[i - 1 - slashes] == '\\')
                slashes++;
            if (slashes % 2 == 0)
                break;
        }
    } else {
        while (i > 0 && isInWord(last) && isInWord(text[i - 1]))
            i--;
    }
    return i;
}

void ebpfMonRulesFormatPlace(const char *file, const char *text, size_t length, size_t at, const char *why, char *buf,
                     size_t size)
{
    unsigned line = 1, column = 1;
    int n;

    for (size_t i = 0; i < at && i < length; i++) {
        column++;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    n = snprintf(buf, size, "%s:%u:%u: %s", file, line, column, why);
    if (n < 0 || (size_t)n >= size)
        snprintf(buf, size, "...:%u:%u: %s", line, column, why);
    ebpfMonTextClean(buf, size); /* it has words of the file */
}
