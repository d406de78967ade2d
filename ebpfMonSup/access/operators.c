/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/operators.h"

#define SEPARATORS " ,\t"

static void addUid(ebpfMonOperators *operators, uid_t uid)
{
    if (!ebpfMonOperatorsHasUser(operators, uid))
        operators->uid[operators->uidCount++] = uid;
}

void ebpfMonOperatorsInit(ebpfMonOperators *operators)
{
    memset(operators, 0, sizeof(*operators));
    addUid(operators, 0);
    addUid(operators, geteuid());
}

/* 0, or -1: no such user. (uid_t)-1 is nobody's: chown(2) takes it for "no change". */
static int findUid(const char *word, uid_t *uid)
{
    const struct passwd *user;
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(word, &end, 10);
    if (word[0] >= '0' && word[0] <= '9' && !*end) {
        *uid = (uid_t)number;
        return errno || number >= (uid_t)-1 ? -1 : 0;
    }
    user = getpwnam(word);
    if (!user)
        return -1;
    *uid = user->pw_uid;
    return 0;
}

static int findHost(const char *word, uint32_t *addr)
{
    struct in_addr in;

    if (inet_pton(AF_INET, word, &in) != 1)
        return -1;
    *addr = in.s_addr;
    return 0;
}

int ebpfMonOperatorsSetUsers(ebpfMonOperators *operators, const char *users, char *text, size_t size)
{
    ebpfMonOperators wanted = *operators;
    char words[1024], *rest = words, *word;
    uid_t uid;

    if (snprintf(words, sizeof(words), "%s", users) >= (int)sizeof(words)) {
        snprintf(text, size, "the list is too long; the users stay as they were");
        return -1;
    }
    wanted.uidCount = 0;
    while ((word = strtok_r(rest, SEPARATORS, &rest)) != NULL) {
        if (wanted.uidCount == EBPFMON_OPERATORS_MAX) {
            snprintf(text, size, "more than %d users: leave some out; the users stay as they were",
                     EBPFMON_OPERATORS_MAX);
            return -1;
        }
        if (findUid(word, &uid)) {
            snprintf(text, size, "this host has no user '%.64s': correct the name, or give the uid; the users stay as "
                     "they were", word);
            return -1;
        }
        addUid(&wanted, uid);
    }
    *operators = wanted;
    return 0;
}

int ebpfMonOperatorsSetHosts(ebpfMonOperators *operators, const char *hosts, char *text, size_t size)
{
    ebpfMonOperators wanted = *operators;
    char words[2048], *rest = words, *word;
    uint32_t addr;

    if (snprintf(words, sizeof(words), "%s", hosts) >= (int)sizeof(words)) {
        snprintf(text, size, "the list is too long; the hosts stay as they were");
        return -1;
    }
    wanted.hostCount = 0;
    while ((word = strtok_r(rest, SEPARATORS, &rest)) != NULL) {
        if (wanted.hostCount == EBPFMON_OPERATORS_MAX) {
            snprintf(text, size, "more than %d hosts: leave some out; the hosts stay as they were",
                     EBPFMON_OPERATORS_MAX);
            return -1;
        }
        if (findHost(word, &addr)) {
            snprintf(text, size, "'%.64s' is not a numeric IPv4 address as 10.0.0.5; the hosts stay as they were",
                     word);
            return -1;
        }
        if (!ebpfMonOperatorsHasHost(&wanted, addr))
            wanted.host[wanted.hostCount++] = addr;
    }
    *operators = wanted;
    return 0;
}

int ebpfMonOperatorsHasUser(const ebpfMonOperators *operators, uid_t uid)
{
    for (unsigned i = 0; i < operators->uidCount; i++)
        if (operators->uid[i] == uid)
            return 1;
    return 0;
}

int ebpfMonOperatorsHasHost(const ebpfMonOperators *operators, uint32_t addr)
{
    for (unsigned i = 0; i < operators->hostCount; i++)
        if (operators->host[i] == addr)
            return 1;
    return 0;
}

/* Appends; what does not fit is left out. */
static void append(char *buf, size_t size, const char *separator, const char *text)
{
    size_t used = strlen(buf);

    snprintf(buf + used, size - used, "%s%s", separator, text);
}

void ebpfMonOperatorsFormat(const ebpfMonOperators *operators, char *buf, size_t size)
{
    char word[INET_ADDRSTRLEN + 32];

    snprintf(buf, size, "users");
    for (unsigned i = 0; i < operators->uidCount; i++) {
        const struct passwd *user = getpwuid(operators->uid[i]);

        if (user)
            snprintf(word, sizeof(word), "%.40s", user->pw_name);
        else
            snprintf(word, sizeof(word), "%u", (unsigned)operators->uid[i]);
        append(buf, size, i ? ", " : " ", word);
    }
    append(buf, size, "", "; other hosts");
    for (unsigned i = 0; i < operators->hostCount; i++) {
        inet_ntop(AF_INET, &operators->host[i], word, sizeof(word));
        append(buf, size, i ? ", " : " ", word);
    }
    if (!operators->hostCount)
        append(buf, size, " ", "none");
}
