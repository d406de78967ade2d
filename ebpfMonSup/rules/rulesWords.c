/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>

#include <epicsString.h>

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
