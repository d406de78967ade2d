/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/shares.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "host/procRead.h"

/* --- accounts of users --- */

#define STUCK_MAX     64         /* abandoned readers, of all users */
#define STUCK_TRUSTED 16         /* … and so many more, if the process is trusted */
#define STUCK_USER    8          /* … of one user */
#define STUCK_SYSTEM  32         /* … of a system user: a file server that is gone stops many of its processes */
#define ACCOUNTS      256        /* processes that were stuck; more than STUCK_MAX + STUCK_TRUSTED */
#define USERS         64
#define TRUSTED       4096       /* places, by pid, a power of two */
#define SHARE_NS      EBPFMON_SECOND_NS /* what the processes of one user together may cost … */
#define SHARE_LEAK    20         /* … and then a twentieth of the time */
#define CPU_NS        (4 * EBPFMON_SECOND_NS) /* CPU time that they may take: a dozen large IOCs start at once … */
#define CPU_LEAK      50         /* … and then 2 % of the time: with what is not charged, less than a twentieth */
#define CPU_DEBT      (CPU_NS + CPU_NS / 10) /* beyond that nothing new is looked at: one look may cost a second */
#define SHORTEST      8          /* whoever used up its share gets this part of the time that was asked for … */
#define LOOK_NS       EBPFMON_SECOND_NS /* … and one of its processes is looked at in this time … */
#define LOOKS_SYSTEM  16         /* … of a system user so many, or its IOCs would wait for minutes */
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
    uint64_t looksAt;            /* monotonic ns: its last looks began */
    unsigned looks;              /* since then */
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

static int isSystemUser(uid_t uid)
{
    return uid < EBPFMON_SYSTEM_USERS;
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
    return u && u->stuck >= (isSystemUser(u->uid) ? STUCK_SYSTEM : STUCK_USER);
}

/* The account of a user, with its charge up to date. When there are too many users they share the last place. */
static user *getUser(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now)
{
    user *u = findUser(accounts, uid);

    for (unsigned i = 0; !u && i < USERS - 1; i++)
        if (!accounts->user[i].isUsed ||
            (!accounts->user[i].stuck && now - accounts->user[i].at > CPU_DEBT * CPU_LEAK)) {
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
    if (isSystemUser(uid) || !ns)
        return;
    getUser(accounts, uid, now)->cpu += ns;
    accounts->isCharged = 1;
}

int ebpfMonForeignAccountsIsUserCharged(ebpfMonForeignAccounts *accounts, uid_t uid, uint64_t now)
{
    const user *u = accounts->isCharged ? getUser(accounts, uid, now) : NULL;

    return u && (u->charged >= SHARE_NS || u->cpu >= CPU_NS);
}

int ebpfMonForeignAccountsTakeLook(ebpfMonForeignAccounts *accounts, pid_t pid, uint64_t now)
{
    user *u;

    if (!ebpfMonForeignAccountsIsCharged(accounts, pid, now))
        return 1;
    u = getUser(accounts, ebpfMonProcPayer(pid), now);
    if (now - u->looksAt >= LOOK_NS) {
        u->looksAt = now;
        u->looks = 0;
    }
    if (u->cpu >= CPU_DEBT || u->looks >= (isSystemUser(u->uid) ? LOOKS_SYSTEM : 1))
        return 0;
    u->looks++;
    return 1;
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

/* --- jobs --- */

#define STACK_BYTES (512u * 1024u)
#define IDLE_NS     (12 * EBPFMON_SECOND_NS) /* then a reader without a job ends, except one, the reserve */
#define REFUSED_NS  (30 * EBPFMON_SECOND_NS) /* so long after a thread was refused it is said */
#define SLOW_NS     2000000ull   /* what is charged: a job that takes longer … */
#define LONG_NS     100000000ull /* … or this, if it only computes */
#define UNBEGUN_NS  (5 * EBPFMON_SECOND_NS) /* a reader gets no CPU: the host is overloaded */
#define RUNNABLE_NS (5 * EBPFMON_SECOND_NS) /* one that computes, or waits for a CPU, gets this long: it ends by
                                             * itself */

typedef struct reader {
    struct reader *next;         /* in the list of idle ones */
    pthread_cond_t wake, done;   /* a job is there; it is done */
    pid_t    tid;
    /* the job, NULL: none */
    const ebpfMonForeignJob *job;
    void    *data;
    pid_t    pid;                /* 0: abandoned, and nobody is to blame */
    uid_t    uid;                /* valid once it is abandoned */
    uint64_t began;              /* monotonic ns, 0: not yet */
    int      finished, abandoned;
    int      slept;              /* the job did: it waited for something else than a CPU */
    uint64_t took, cpu;          /* ns, of a job that is finished: without what it waited for a CPU; of CPU time */
    int      statistics;         /* file: what the scheduler says of this thread; -1: it says nothing */
    uint64_t cpuWait;            /* … ns, when the job began */
} reader;

/* One in a process. */
static struct {
    pthread_mutex_t lock;        /* guards all of it */
    reader  *idle;
    ebpfMonForeignAccounts *accounts; /* made by the first job */
    uint64_t refusedAt;          /* monotonic ns: there was no thread for a job; 0: always was */
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int isReader;
/* Of all jobs that this thread has had done, ns: without what their readers waited for a CPU; CPU time. */
static __thread uint64_t jobsCost, jobsCpu;

/* Takes the lock. NULL: no memory. */
static ebpfMonForeignAccounts *lockAccounts(void)
{
    pthread_mutex_lock(&all.lock);
    if (!all.accounts)
        all.accounts = ebpfMonForeignAccountsNew();
    return all.accounts;
}

/* Nonzero: there is no other idle reader. This one does not end, because it may be that no more threads can be made. */
static int isReserve(const reader *r)
{
    return all.idle == r && !r->next;
}

/* Waits for a job. 0: there is one. -1: there was none for a while; the reader was removed from the list and must
 * end. */
static int awaitJob(reader *r)
{
    struct timespec until = ebpfMonClockTimespec(ebpfMonClockMonotonic() + IDLE_NS);
    reader **at;

    while (!r->job) {
        if (pthread_cond_timedwait(&r->wake, &all.lock, &until) == 0 || r->job)
            continue;
        for (at = &all.idle; *at && *at != r; at = &(*at)->next)
            ;
        if (*at && !isReserve(r)) {
            *at = r->next;
            return -1;
        }
        /* its caller has not taken the result yet, or it is the reserve */
        until = ebpfMonClockTimespec(ebpfMonClockMonotonic() + IDLE_NS);
    }
    return 0;
}

static long countSleeps(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

/* How long the reader has waited for a CPU since it was started, in ns: the second number of schedstat
 * (Documentation/scheduler/sched-stats.rst). 0: not known. Any thread. */
static uint64_t readCpuWait(const reader *r)
{
    unsigned long long wait = 0;
    char text[80];
    ssize_t n = r->statistics < 0 ? -1 : pread(r->statistics, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = 0;
    return sscanf(text, "%*u %llu", &wait) == 1 ? wait : 0;
}

/* What the job cost so far, without the time that its reader waited for a CPU: on a busy host all threads wait. */
static uint64_t findCost(const reader *r, uint64_t now)
{
    uint64_t cpuWait = readCpuWait(r) - r->cpuWait, took = now - r->began;

    return took > cpuWait ? took - cpuWait : 0;
}

static void *runReader(void *arg)
{
    reader *r = arg;
    uint64_t cpu;
    long sleeps;

    isReader = 1;
    r->tid = (pid_t)syscall(SYS_gettid);
    pthread_setname_np(pthread_self(), "ebpfMonReader");
    r->statistics = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    pthread_mutex_lock(&all.lock);
    while (awaitJob(r) == 0) {
        r->cpuWait = readCpuWait(r);
        r->began = ebpfMonClockMonotonic();
        pthread_mutex_unlock(&all.lock);
        sleeps = countSleeps();
        cpu = ebpfMonClockThreadCpu();
        r->job->run(r->data);
        cpu = ebpfMonClockThreadCpu() - cpu;
        sleeps = countSleeps() - sleeps;
        /* it has waited for nothing but a CPU, or that is asked */
        r->took = sleeps ? findCost(r, ebpfMonClockMonotonic()) : cpu;
        pthread_mutex_lock(&all.lock);
        r->slept = sleeps != 0;
        r->cpu = cpu;
        r->finished = 1;
        if (r->abandoned) {
            ebpfMonForeignAccountsReturn(all.accounts, r->pid, r->uid, ebpfMonClockMonotonic());
            break;
        }
        pthread_cond_signal(&r->done);
        r->job = NULL; /* the caller takes the result, and makes this reader idle */
    }
    pthread_mutex_unlock(&all.lock);
    if (r->abandoned)
        r->job->drop(r->data);
    if (r->statistics >= 0)
        close(r->statistics);
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->done);
    free(r);
    return NULL;
}

/* NULL: no memory, or too many threads. */
static reader *startReader(void)
{
    reader *r = calloc(1, sizeof(*r));
    pthread_condattr_t clock;

    if (!r)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &clock);
    pthread_cond_init(&r->done, &clock);
    pthread_condattr_destroy(&clock);
    if (ebpfMonPlainThreadStart(runReader, r, STACK_BYTES) == 0)
        return r;
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->done);
    free(r);
    return NULL;
}

/* Waits for the job of this reader. 0: done. ETIMEDOUT: the process does not answer. EAGAIN: the job has not begun. */
static int awaitReader(reader *r, uint64_t limit)
{
    uint64_t posted = ebpfMonClockMonotonic(), now = posted;

    while (!r->finished) {
        uint64_t until = r->began ? r->began + limit : posted + (limit < UNBEGUN_NS ? limit : UNBEGUN_NS);
        struct timespec at;

        now = ebpfMonClockMonotonic();
        if (now >= until) {
            if (!r->began && now - posted >= UNBEGUN_NS)
                return EAGAIN;
            if (r->began && (now - r->began >= limit + RUNNABLE_NS || ebpfMonProcThreadState(0, r->tid) != 'R'))
                return ETIMEDOUT;
            until = now + 10000000;
        }
        at = ebpfMonClockTimespec(until);
        pthread_cond_timedwait(&r->done, &all.lock, &at);
    }
    if (r->took > (r->slept ? SLOW_NS : LONG_NS) && !isSystemUser(ebpfMonProcPayer(r->pid)))
        ebpfMonForeignAccountsCharge(all.accounts, r->pid, r->took, ebpfMonClockMonotonic());
    return 0;
}

static int runJob(reader *r, pid_t pid, const ebpfMonForeignJob *job, void *data, uint64_t limit)
{
    uint64_t now, cost;
    int err;

    r->pid = pid;
    r->data = data;
    r->began = 0;
    r->finished = r->abandoned = 0;
    r->job = job;
    pthread_cond_signal(&r->wake);
    err = awaitReader(r, limit);
    now = ebpfMonClockMonotonic();
    cost = err ? findCost(r, now) : r->took;
    jobsCost += cost;
    if (err == 0) {
        jobsCpu += r->cpu;
        return 0;
    }
    r->abandoned = 1;
    if (err == ETIMEDOUT)
        ebpfMonForeignAccountsCharge(all.accounts, pid, cost, now);
    else
        r->pid = 0; /* as if it were stuck, but nobody is to blame */
    r->uid = ebpfMonForeignAccountsAbandon(all.accounts, r->pid, now);
    return err;
}

int ebpfMonForeignRun(pid_t pid, double seconds, const ebpfMonForeignJob *job, void *data)
{
    ebpfMonForeignAccounts *accounts;
    uint64_t limit;
    reader *r;
    int err = ETIMEDOUT;

    if (isReader) {
        job->run(data);
        return 0;
    }
    accounts = lockAccounts();
    limit = !accounts ?
                0 :
                ebpfMonForeignAccountsFindLimit(accounts, pid, (uint64_t)(seconds * 1e9), ebpfMonClockMonotonic());
    r = limit ? all.idle : NULL;
    if (r) {
        all.idle = r->next;
    } else if (limit) {
        r = startReader();
        all.refusedAt = r ? all.refusedAt : ebpfMonClockMonotonic();
        err = EAGAIN;
    }
    if (!r) {
        pthread_mutex_unlock(&all.lock);
        job->drop(data);
        errno = err;
        return -1;
    }
    err = runJob(r, pid, job, data, limit);
    if (err == 0) {
        r->next = all.idle;
        all.idle = r;
    }
    pthread_mutex_unlock(&all.lock);
    errno = err;
    return err ? -1 : 0;
}

uint64_t ebpfMonForeignGetCost(void)
{
    return jobsCost;
}

uint64_t ebpfMonForeignGetCpu(void)
{
    return ebpfMonClockThreadCpu() + jobsCpu;
}

int ebpfMonForeignIsAside(pid_t pid)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();
    int aside = accounts && ebpfMonForeignAccountsIsAside(accounts, pid, ebpfMonClockMonotonic());

    pthread_mutex_unlock(&all.lock);
    return aside;
}

int ebpfMonForeignTakeLook(pid_t pid)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();
    int may = accounts && ebpfMonForeignAccountsTakeLook(accounts, pid, ebpfMonClockMonotonic());

    pthread_mutex_unlock(&all.lock);
    return may;
}

void ebpfMonForeignTrust(pid_t pid)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();

    if (accounts)
        ebpfMonForeignAccountsTrust(accounts, pid);
    pthread_mutex_unlock(&all.lock);
}

void ebpfMonForeignCharge(pid_t pid, uint64_t ns)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();

    if (accounts && !isSystemUser(ebpfMonProcPayer(pid)))
        ebpfMonForeignAccountsCharge(accounts, pid, ns, ebpfMonClockMonotonic());
    pthread_mutex_unlock(&all.lock);
}

void ebpfMonForeignChargeCpu(uid_t user, uint64_t ns)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();

    if (accounts)
        ebpfMonForeignAccountsChargeCpu(accounts, user, ns, ebpfMonClockMonotonic());
    pthread_mutex_unlock(&all.lock);
}

int ebpfMonForeignIsUserCharged(uid_t user)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();
    int charged = accounts && ebpfMonForeignAccountsIsUserCharged(accounts, user, ebpfMonClockMonotonic());

    pthread_mutex_unlock(&all.lock);
    return charged;
}

int ebpfMonForeignIsCharged(pid_t pid)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();
    int charged = accounts && ebpfMonForeignAccountsIsCharged(accounts, pid, ebpfMonClockMonotonic());

    pthread_mutex_unlock(&all.lock);
    return charged;
}

unsigned ebpfMonForeignCountStuck(void)
{
    ebpfMonForeignAccounts *accounts = lockAccounts();
    unsigned n = accounts ? ebpfMonForeignAccountsCountStuck(accounts) : 0;

    pthread_mutex_unlock(&all.lock);
    return n;
}

int ebpfMonForeignLacksThreads(void)
{
    uint64_t refusedAt;

    pthread_mutex_lock(&all.lock);
    refusedAt = all.refusedAt;
    pthread_mutex_unlock(&all.lock);
    return refusedAt && ebpfMonClockMonotonic() - refusedAt < REFUSED_NS;
}

/* --- files --- */

/* Files of others, and files that may never answer, read by a job. */

#define PIECE 16384

typedef struct {
    char   path[64];
    size_t max;
    char  *text;    /* malloc'ed, NULL: it cannot be read */
    size_t size, room;
    int    err;
} fileJob;

static void dropFileJob(void *data)
{
    fileJob *j = data;

    free(j->text);
    free(j);
}

/* The number of bytes read, 0: the end, -1 with errno. */
static ssize_t readPiece(fileJob *j, int fd)
{
    size_t want = j->max - j->size < PIECE ? j->max - j->size : PIECE;
    ssize_t n;

    if (ebpfMonArrayGrow(&j->text, &j->room, j->size + want + 1, PIECE, 1)) {
        errno = ENOMEM;
        return -1;
    }
    n = read(fd, j->text + j->size, want);
    j->size += n > 0 ? (size_t)n : 0;
    j->text[j->size] = 0;
    return n;
}

static void runFileJob(void *data)
{
    fileJob *j = data;
    int fd = open(j->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd >= 0)
        while ((n = readPiece(j, fd)) > 0)
            ;
    j->err = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (n < 0 && j->size == 0) { /* else what was read before the error is good */
        free(j->text);
        j->text = NULL;
    }
}

/* The job done, the caller frees it. NULL with errno. */
static fileJob *readFile(pid_t pid, const char *path, double seconds, size_t max)
{
    static const ebpfMonForeignJob job = { runFileJob, dropFileJob };
    fileJob *j = strlen(path) < sizeof(j->path) ? calloc(1, sizeof(*j)) : NULL;

    if (!j) {
        errno = ENOMEM;
        return NULL;
    }
    j->max = max;
    snprintf(j->path, sizeof(j->path), "%s", path);
    return ebpfMonForeignRun(pid, seconds, &job, j) ? NULL : j;
}

ssize_t ebpfMonForeignReadFile(pid_t pid, const char *path, double seconds, char *buf, size_t size)
{
    fileJob *j = readFile(pid, path, seconds, size - 1);
    ssize_t got = -1;
    int err;

    if (!j)
        return -1;
    err = j->err;
    if (j->text) {
        got = (ssize_t)j->size;
        memcpy(buf, j->text, j->size + 1);
    }
    dropFileJob(j);
    errno = err;
    return got;
}

char *ebpfMonForeignReadAll(pid_t pid, const char *path, double seconds, size_t max)
{
    fileJob *j = readFile(pid, path, seconds, max);
    char *text;
    int err;

    if (!j)
        return NULL;
    text = j->text;
    err = j->err;
    free(j);
    errno = err;
    return text;
}

int ebpfMonForeignOpenFile(const char *path)
{
    int place = open(path, O_PATH | O_CLOEXEC), file = -1, err; /* it finds the file, and does not open it */
    char same[32];
    struct stat st;

    if (place < 0)
        return -1;
    if (fstat(place, &st) == 0) {
        snprintf(same, sizeof(same), "/proc/self/fd/%d", place);
        errno = ENXIO;
        file = S_ISREG(st.st_mode) ? open(same, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    }
    err = errno;
    close(place);
    errno = err;
    return file;
}
