/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "access/operators.h"
#include "common/nameService.h"
#include "host/tcpSockets.h"

/* --- operators --- */

#define SEPARATORS " ,\t"
#define NAME_SECONDS 1.0 /* without an answer, the number is shown */

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

/* No user has (uid_t)-1: chown(2) takes it for "no change". */
static ebpfMonNameAnswer findUid(const char *word, uid_t *uid)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(word, &end, 10);
    if (word[0] >= '0' && word[0] <= '9' && !*end) {
        *uid = (uid_t)number;
        return errno || number >= (uid_t)-1 ? ebpfMonNameUnknown : ebpfMonNameFound;
    }
    return ebpfMonNameServiceFindUser(word, EBPFMON_NAMES_SECONDS, uid);
}

static int findHost(const char *word, ebpfMonOperatorHost *host)
{
    memset(host, 0, sizeof(*host));
    if (inet_pton(AF_INET, word, &host->addr) == 1)
        return 0;
    if (inet_pton(AF_INET6, word, host->addr6) != 1 || ebpfMonIsMapped(host->addr6) ||
        (host->addr6[0] & htonl(0xffc00000)) == htonl(0xfe800000))
        return -1;
    host->addr = ebpfMonShortAddress(host->addr6);
    return 0;
}

/* Adds one word of a list. 0, or -1: "why" says what is wrong. */
typedef int (*addWord)(ebpfMonOperators *operators, const char *word, char *why, size_t size);

static int addUser(ebpfMonOperators *operators, const char *word, char *why, size_t size)
{
    uid_t uid;

    if (operators->uidCount == EBPFMON_OPERATORS_MAX) {
        snprintf(why, size, "more than %d users: leave some out", EBPFMON_OPERATORS_MAX);
        return -1;
    }
    switch (findUid(word, &uid)) {
    case ebpfMonNameFound:
        break;
    case ebpfMonNameUnknown:
        snprintf(why, size, "this host has no user '%.64s': correct the name, or give the uid", word);
        return -1;
    case ebpfMonNameSilent:
        snprintf(why, size, "the name service did not say within %.0f s who '%.64s' is: give the uid, or try again",
                 EBPFMON_NAMES_SECONDS, word);
        return -1;
    }
    addUid(operators, uid);
    return 0;
}

static int addHost(ebpfMonOperators *operators, const char *word, char *why, size_t size)
{
    ebpfMonOperatorHost host;

    if (operators->hostCount == EBPFMON_OPERATORS_MAX) {
        snprintf(why, size, "more than %d hosts: leave some out", EBPFMON_OPERATORS_MAX);
        return -1;
    }
    if (findHost(word, &host)) {
        snprintf(why, size, "'%.64s' is not a numeric address: write it like 10.0.0.5 or fd00::5", word);
        return -1;
    }
    if (!ebpfMonOperatorsHasHost(operators, host.addr, host.addr6))
        operators->host[operators->hostCount++] = host;
    return 0;
}

/* Adds all words of a list. "what": "users" or "hosts". 0, or -1: "text" says what is wrong. */
static int readList(ebpfMonOperators *changed, addWord add, const char *list, const char *what, char *text, size_t size)
{
    char words[2048], why[200] = "the list is too long", *rest = words, *word;
    int failed = snprintf(words, sizeof(words), "%s", list) >= (int)sizeof(words);

    while (!failed && (word = strtok_r(rest, SEPARATORS, &rest)) != NULL)
        failed = add(changed, word, why, sizeof(why));
    if (failed)
        snprintf(text, size, "%s; the %s stay as they were", why, what);
    return failed ? -1 : 0;
}

int ebpfMonOperatorsSetUsers(ebpfMonOperators *operators, const char *users, char *text, size_t size)
{
    ebpfMonOperators changed = *operators;

    changed.uidCount = 0;
    if (readList(&changed, addUser, users, "users", text, size))
        return -1;
    *operators = changed;
    return 0;
}

int ebpfMonOperatorsSetHosts(ebpfMonOperators *operators, const char *hosts, char *text, size_t size)
{
    ebpfMonOperators changed = *operators;

    changed.hostCount = 0;
    if (readList(&changed, addHost, hosts, "hosts", text, size))
        return -1;
    *operators = changed;
    return 0;
}

int ebpfMonOperatorsHasUser(const ebpfMonOperators *operators, uid_t uid)
{
    for (unsigned i = 0; i < operators->uidCount; i++)
        if (operators->uid[i] == uid)
            return 1;
    return 0;
}

int ebpfMonOperatorsHasHost(const ebpfMonOperators *operators, uint32_t addr, const uint32_t addr6[4])
{
    for (unsigned i = 0; i < operators->hostCount; i++)
        if (ebpfMonIsSameAddress(operators->host[i].addr, operators->host[i].addr6, addr, addr6))
            return 1;
    return 0;
}

/* Appends "separator" and "text"; the end is left out if there is no room. */
static void appendText(char *buf, size_t size, const char *separator, const char *text)
{
    size_t used = strlen(buf);

    snprintf(buf + used, size - used, "%s%s", separator, text);
}

void ebpfMonOperatorsFormat(const ebpfMonOperators *operators, char *buf, size_t size)
{
    char word[EBPFMON_PEERTEXT_SIZE];
    int isSilent = 0;

    snprintf(buf, size, "users");
    for (unsigned i = 0; i < operators->uidCount; i++) {
        ebpfMonNameAnswer answer = isSilent ? ebpfMonNameSilent :
                                   ebpfMonNameServiceFindUserName(operators->uid[i], NAME_SECONDS, word, 41);

        isSilent = answer == ebpfMonNameSilent;
        if (answer != ebpfMonNameFound)
            snprintf(word, sizeof(word), "%u", (unsigned)operators->uid[i]);
        appendText(buf, size, i ? ", " : " ", word);
    }
    appendText(buf, size, "", "; other hosts");
    for (unsigned i = 0; i < operators->hostCount; i++) {
        ebpfMonPeerTextAddress(operators->host[i].addr, operators->host[i].addr6, word, sizeof(word));
        appendText(buf, size, i ? ", " : " ", word);
    }
    if (!operators->hostCount)
        appendText(buf, size, " ", "none");
}

/* --- judging --- */

/* One per process: see guard.h. */
static struct {
    ebpfMonOperators operators;
    int              isFixed;
} judge;

void ebpfMonJudgeInit(void)
{
    ebpfMonOperatorsInit(&judge.operators);
}

void ebpfMonJudgeFix(int fixed)
{
    judge.isFixed = fixed;
}

ebpfMonOperators *ebpfMonJudgeSetOperators(void)
{
    return judge.isFixed ? NULL : &judge.operators;
}

const ebpfMonOperators *ebpfMonJudgeGetOperators(void)
{
    return &judge.operators;
}

int ebpfMonJudgeHasGroup(const char *asg)
{
    return asg && (strcmp(asg, EBPFMON_ASG) == 0 || strcmp(asg, EBPFMON_ASG_RO) == 0);
}

int ebpfMonJudgeAllows(const ebpfMonAccessClient *client, const char **why)
{
    const ebpfMonPeerUser *user = &client->user;

    switch (user->kind) {
    case ebpfMonPeerLocal:
        *why = "not an operator: see ebpfMonOperators";
        return ebpfMonOperatorsHasUser(&judge.operators, user->uid);
    case ebpfMonPeerRemote:
        *why = "not a host of operators: see ebpfMonOperatorHosts";
        return ebpfMonOperatorsHasHost(&judge.operators, user->connection.addr, user->connection.addr6);
    default:
        *why = user->why;
        return 0;
    }
}
