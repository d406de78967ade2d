/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/jsonPlace.h"
#include "common/text.h"

/* Nonzero: the character can be in a number, or in a key without quotes. */
static int isInWord(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("+-._$", c));
}

size_t ebpfMonJsonFindToken(const char *text, size_t length, size_t end)
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

void ebpfMonJsonFormatPlace(const char *file, const char *text, size_t length, size_t at, const char *why, char *buf,
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
    ebpfMonTextClean(buf, size); /* because it contains words of the file */
}

size_t ebpfMonJsonDescribeMistake(yajl_handle yajl, const char *text, size_t length, int isComplete, char *why,
                                  size_t size)
{
    unsigned char *error = yajl_get_error(yajl, 0, (const unsigned char *)text, length);
    size_t at = yajl_get_bytes_consumed(yajl);

    if (isComplete) /* the mistake is at the end of the text; the parser's offset is that of a blank which yajl
                     * appends */
        at = length;
    else if (at)
        at--;
    snprintf(why, size, "no JSON: %.*s. Correct it; // comments are allowed",
             error ? (int)strcspn((char *)error, "\n") : 1, error ? (char *)error : "?");
    if (error)
        yajl_free_error(yajl, error);
    return at;
}
