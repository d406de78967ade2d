/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/shares.h"
#include "host/foreignAccounts.h"
#include "host/procPayer.h"
#include "host/procRead.h"

#define STUCK_MAX     64         /* abandoned readers, of all users */
#define STUCK_TRUSTED 16         /* … and so many more, if the process is trusted */
#define STUCK_USER    8          /* … of one user */
#define ACCOUNTS      256        /* processes that were stuck; more than STUCK_MAX + STUCK_TRUSTED */
#define USERS         64
#define TRUSTED       4096       /* places, by pid, a power of two */
#define SHARE_NS      EBPFMON_SECOND_NS /* what the processes of one user together may cost … */
#define SHARE_LEAK    20         /* … and then a twentieth of the time */
#define CPU_NS        (EBPFMON_SECOND_NS * 2 / 5) /* CPU time that they may take … */
#define CPU_LEAK      50         /* … and then 2 % of the time: with what is not charged, less than a twentieth */
#define SHORTEST      8          /* whoever used up its share gets this part of the time that was asked for */
#define ASIDE_NS      EBPFMON_SECOND_NS /* after the first time, doubled each time */
#define ASIDE_STEPS   8          /* 1 s to 256 s */
#define NOBODY        ((uid_t)-1) /* is to blame */
#define FORGIVE_NS    (600 * EBPFMON_SECOND_NS) /* so long without trouble, and ASIDE_NS begins anew */

/* A process that did not answer. */
typedef struct {
    pid_t    pid;                /* 0: free */
    uint64_t start;
    unsigned stuck;              /* readers that it holds */
    unsigned times;              /* it was set aside */
    uint64_t until, used;        /* monotonic ns: set aside until; looked up */
} account;

typedef struct {
    pid_t    pid;                /* 0: free */
    uint64_t start;
} trust;

typedef struct {
    uid_t    uid;
    int      isUsed;
    unsigned stuck;
    uint64_t charged, at;        /* ns; when it was brought up to date */
    uint64_t cpu;                /* ns of CPU time, as "charged" */
} user;

struct ebpfMonForeignAccounts {
    unsigned stuck;
    account  account[ACCOUNTS];
    user     user[USERS];
    int      isCharged;          /* some user has a charge or a stuck reader */
    trust    trusted[TRUSTED];
};

ebpfMonForeignAccounts *ebpfMonForeignAccountsNew(void)
{
    return calloc(1, sizeof(ebpfMonForeignAccounts));
}

static account *findAccount(ebpfMonForeignAccounts *accounts, pid_t pid)
{
    for (unsigned i = 0; i < ACCOUNTS; i++)
        if (accounts->account[i].pid == pid)
            return &accounts->account[i];
    return NULL;
}

/* An account whose readers are abandoned keeps its place; there are more places than such readers. */
static account *makeAccount(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    account *a = findAccount(accounts, pid), *oldest = NULL;

    for (unsigned i = 0; !a && i < ACCOUNTS; i++)
        if (!accounts->account[i].stuck && (!oldest || accounts->account[i].used < oldest->used))
            oldest = &accounts->account[i];
    if (!a && oldest) {
        a = oldest;
        *a = (account){ .pid = pid, .start = ebpfMonProcStart(pid) };
    }
    if (a)
        a->used = now;
    return a;
}

/* Nonzero: it is the same process, and not a later one with the same pid. */
static int isSetAside(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    account *a = findAccount(accounts, pid);

    if (!a || (!a->stuck && now >= a->until))
        return 0;
    if (!a->stuck && !ebpfMonProcLives(pid, a->start)) {
        memset(a, 0, sizeof(*a));
        return 0;
    }
    a->used = now;
    return 1;
}

/* NULL: it has no entry, and nothing against it. */
static user *findUser(ebpfMonForeignAccounts *accounts, uid_t uid)
{
    for (unsigned i = 0; i < USERS; i++)
        if (accounts->user[i].isUsed && accounts->user[i].uid == uid)
            return &accounts->user[i];
    return NULL;
}

static int isTrusted(const ebpfMonForeignAccounts *accounts, pid_t pid)
{
    const trust *t = &accounts->trusted[(unsigned)pid & (TRUSTED - 1)];

    return t->pid == pid && ebpfMonProcLives(pid, t->start); /* a later process with this pid is another one */
}

/* Nonzero: its user, or all users together, have as many abandoned readers as is allowed. */
static int isCrowded(ebpfMonForeignAccounts *accounts, pid_t pid)
{
    const user *u;

    if (!accounts->stuck)
        return 0;
    if (isTrusted(accounts, pid))
        return accounts->stuck >= STUCK_MAX + STUCK_TRUSTED;
    if (accounts->stuck >= STUCK_MAX)
        return 1;
    u = findUser(accounts, ebpfMonProcPayer(pid));
    return u && u->stuck >= STUCK_USER;
}

/* The account of a user, with its charge up to date. When there are too many users they share the last place. */
static user *getUser(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now)
{
    user *u = findUser(accounts, uid);

    for (unsigned i = 0; !u && i < USERS - 1; i++)
        if (!accounts->user[i].isUsed ||
            (!accounts->user[i].stuck && now - accounts->user[i].at > SHARE_NS * CPU_LEAK)) {
            u = &accounts->user[i];
            *u = (user){ .uid = uid, .isUsed = 1, .at = now };
        }
    if (!u) {
        u = &accounts->user[USERS - 1];
        u->isUsed = 1;
    }
    if (now > u->at) {
        uint64_t leak = (now - u->at) / SHARE_LEAK, cpuLeak = (now - u->at) / CPU_LEAK;

        u->charged = u->charged > leak ? u->charged - leak : 0;
        u->cpu = u->cpu > cpuLeak ? u->cpu - cpuLeak : 0;
        u->at = now;
    }
    return u;
}

static void noteCharges(ebpfMonForeignAccounts *accounts)
{
    accounts->isCharged = 0;
    for (unsigned i = 0; i < USERS; i++)
        accounts->isCharged |= accounts->user[i].isUsed && (accounts->user[i].stuck || accounts->user[i].charged ||
                                                            accounts->user[i].cpu);
}

uint64_t ebpfMonForeignAccountsFindLimit(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t wanted, uint64_t now)
{
    const user *u;
    uint64_t left;

    if (isSetAside(accounts, pid, now) || isCrowded(accounts, pid))
        return 0;
    if (!accounts->isCharged)
        return wanted;
    u = getUser(accounts, ebpfMonProcPayer(pid), now);
    left = u->charged < SHARE_NS ? SHARE_NS - u->charged : 0;
    noteCharges(accounts);
    if (left > wanted)
        left = wanted;
    return left > wanted / SHORTEST ? left : wanted / SHORTEST;
}

void ebpfMonForeignAccountsCharge(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t ns, uint64_t now)
{
    getUser(accounts, ebpfMonProcPayer(pid), now)->charged += ns;
    accounts->isCharged = 1;
}

uid_t ebpfMonForeignAccountsAbandon(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    account *a = pid ? makeAccount(accounts, pid, now) : NULL;
    uid_t uid = pid ? ebpfMonProcPayer(pid) : NOBODY;

    accounts->stuck++;
    getUser(accounts, uid, now)->stuck++;
    accounts->isCharged = 1;
    if (!a)
        return uid;
    if (a->until && now > a->until + FORGIVE_NS)
        a->times = 0;
    a->stuck++;
    a->until = now + (ASIDE_NS << a->times);
    if (a->times < ASIDE_STEPS)
        a->times++;
    return uid;
}

void ebpfMonForeignAccountsReturn(ebpfMonForeignAccounts *accounts, pid_t pid, uid_t uid, uint64_t now)
{
    account *a = pid ? findAccount(accounts, pid) : NULL;
    user *u = getUser(accounts, uid, now);

    accounts->stuck--;
    if (u->stuck)
        u->stuck--;
    if (a && a->stuck)
        a->stuck--;
}

int ebpfMonForeignAccountsIsAside(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    return isSetAside(accounts, pid, now) || isCrowded(accounts, pid);
}

void ebpfMonForeignAccountsChargeCpu(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t ns, uint64_t now)
{
    if (uid < EBPFMON_SYSTEM_USERS || !ns)
        return;
    getUser(accounts, uid, now)->cpu += ns;
    accounts->isCharged = 1;
}

int ebpfMonForeignAccountsIsUserCharged(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now)
{
    const user *u = accounts->isCharged ? getUser(accounts, uid, now) : NULL;

    return u && (u->charged >= SHARE_NS || u->cpu >= CPU_NS);
}

int ebpfMonForeignAccountsIsCharged(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    return accounts->isCharged && ebpfMonForeignAccountsIsUserCharged(accounts, ebpfMonProcPayer(pid), now);
}

void ebpfMonForeignAccountsTrust(ebpfMonForeignAccounts *accounts, pid_t pid)
{
    accounts->trusted[(unsigned)pid & (TRUSTED - 1)] = (trust){ .pid = pid, .start = ebpfMonProcStart(pid) };
}

unsigned ebpfMonForeignAccountsCountStuck(const ebpfMonForeignAccounts *accounts)
{
    return accounts->stuck;
}
