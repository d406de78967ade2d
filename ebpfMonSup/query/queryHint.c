/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "query/queryHint.h"

#define WORD_MOST 24 /* longer words are no words of ours */

/* Words of SQL, BPFQL, bpftrace and BCC. */
static const struct { const char *theirs, *ours;
} synonyms[] = {
    {"select", "keys"},      {"group_by", "keys"},    {"groupby", "keys"},   {"by", "keys"},      {"from", "source"},
    {"probe", "source"},     {"filter", "where"},     {"order_by", "sort"},  {"orderby", "sort"}, {"limit", "top"},
    {"hist", "histogram"},   {"lhist", "histogram"},  {"op", "is"},          {"operator", "is"},  {"comm", "thread"},
    {"process", "pid"},      {"user", "author"},      {"caller", "site"},    {"ustack", "site"},  {"retval", "return"},
    {"latency", "duration"}, {"elapsed", "duration"}, {"time", "duration"},  {"path", "file"},    {"peer", "file"},
    {"fd", "file"},          {"lib", "object"},       {"library", "object"}, {"min", "from"},     {"max", "to"},
    {"buckets", "steps"},    {"minutes", "seconds"},
};

/* The number of letters that must be changed, added, left out or exchanged with the next one to make a word of
 * another. */
static unsigned countChanges(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned char d[WORD_MOST + 1][WORD_MOST + 1];

    if (n > WORD_MOST || m > WORD_MOST)
        return WORD_MOST;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned char)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            unsigned least = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

            least = d[i - 1][j] + 1u < least ? d[i - 1][j] + 1u : least;
            least = d[i][j - 1] + 1u < least ? d[i][j - 1] + 1u : least;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1u < least)
                least = d[i - 2][j - 2] + 1u;
            d[i][j] = (unsigned char)least;
        }
    return d[n][m];
}

/* Takes the next word out of the list; NULL: there is none. */
static const char *takeWord(const char *list, char word[WORD_MOST + 1])
{
    size_t length;

    list += strspn(list, " ,\"");
    if (!*list)
        return NULL;
    length = strcspn(list, " ,\"");
    snprintf(word, WORD_MOST + 1, "%.*s", (int)length, list);
    return list + length;
}

/* How unlike they are; 0: they mean the same. */
static unsigned compareWords(const char *word, const char *known)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
        if (strcmp(synonyms[i].theirs, word) == 0 && strcmp(synonyms[i].ours, known) == 0)
            return 0;
    return countChanges(word, known);
}

const char *ebpfMonQueryHint(const char *word, const char *list, char text[EBPFMON_QUERY_HINT])
{
    unsigned least = strlen(word) > 4 ? 3 : strlen(word) > 2 ? 2 : 1; /* one more than may differ */
    char known[WORD_MOST + 1];

    text[0] = 0;
    while ((list = takeWord(list, known)) != NULL) {
        unsigned unlike = compareWords(word, known);

        if (unlike >= least)
            continue;
        least = unlike;
        snprintf(text, EBPFMON_QUERY_HINT, " Did you mean \"%s\"?", known);
    }
    return text;
}
