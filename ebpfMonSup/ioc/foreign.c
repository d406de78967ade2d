/* SPDX-License-Identifier: BSD-3-Clause */
/* See foreign.h. Plain POSIX threads: readers must not have the real-time priority that epicsThreadCreate gives. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "ioc/foreign.h"
#include "ioc/procInfo.h"

#define STACK_BYTES   (512u * 1024u)
#define IDLE_NS       (5 * EBPFMON_SECOND_NS) /* then a reader without a job ends */
#define STUCK_MAX     64         /* abandoned readers, of all users */
#define STUCK_USER    8          /* … of one user */
#define ACCOUNTS      256        /* processes that were slow or stuck; more than STUCK_MAX */
#define USERS         64
#define TRUSTED       4096       /* places, by pid, a power of two */
#define SLOW_NS       2000000ull /* what is charged: a job that takes longer … */
#define SHARE_NS      1000000000ull /* … up to this, for the processes of one user together … */
#define SHARE_LEAK    20         /* … and then a twentieth of the time */
#define SHORTEST      8          /* whoever used up its share gets this part of the time that was asked for */
#define LONG_NS       100000000ull /* a job that only computes is charged, too, from here on */
#define ASIDE_NS      1000000000ull /* after the first time, doubled each time */
#define ASIDE_STEPS   8          /* 1 s to 256 s */
#define UNBEGUN_NS    5000000000ull /* a reader gets no CPU: the host is overloaded */
#define RUNNABLE_NS   5000000000ull /* a reader that computes, or waits for a CPU, gets this long: it ends by itself */
#define FORGIVE_NS    (600 * EBPFMON_SECOND_NS) /* so long without trouble, and ASIDE_NS begins anew */

typedef struct reader {
    struct reader *next;         /* in the list of idle ones */
    pthread_cond_t wake, done;   /* a job is there; it is done */
    pid_t    tid;
    /* the job, NULL: none */
    const ebpfMonForeignJob *job;
    void    *data;
    pid_t    pid;
    uid_t    uid;                /* valid once it is abandoned */
    uint64_t began;              /* monotonic ns, 0: not yet */
    int      finished, abandoned;
    int      slept;              /* the job did: it waited for something else than a CPU */
} reader;

/* A process that was slow. */
typedef struct {
    pid_t    pid;                /* 0: free */
    uint64_t start;
    unsigned stuck;              /* readers that it holds */
    unsigned times;              /* it was set aside */
    uint64_t until, used;        /* monotonic ns: set aside until; looked up */
} account;

typedef struct {
    uid_t    uid;
    int      isUsed;
    unsigned stuck;
    uint64_t charged, at;        /* ns; when it was brought up to date */
} user;

/* One in a process: see foreign.h. */
static struct {
    pthread_mutex_t lock;        /* guards all of it */
    reader  *idle;
    unsigned stuck;
    account  accounts[ACCOUNTS];
    user     users[USERS];
    int      isCharged;          /* some user has a charge or a stuck reader */
    pid_t    trusted[TRUSTED];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int isReader;

/* --- accounts, under the lock ---------------------------------------------------------------------------------- */

static account *findAccount(pid_t pid)
{
    for (unsigned i = 0; i < ACCOUNTS; i++)
        if (all.accounts[i].pid == pid)
            return &all.accounts[i];
    return NULL;
}

/* One that holds readers stays, since there are more places than readers can be stuck. */
static account *makeAccount(pid_t pid, uint64_t now)
{
    account *a = findAccount(pid), *oldest = NULL;

    for (unsigned i = 0; !a && i < ACCOUNTS; i++)
        if (!all.accounts[i].stuck && (!oldest || all.accounts[i].used < oldest->used))
            oldest = &all.accounts[i];
    if (!a && oldest) {
        a = oldest;
        *a = (account){ .pid = pid, .start = ebpfMonProcStart(pid) };
    }
    if (a)
        a->used = now;
    return a;
}

/* Nonzero: itself. The next process with this pid has to do with it no more. */
static int isSetAside(pid_t pid, uint64_t now)
{
    account *a = findAccount(pid);

    if (!a || (!a->stuck && now >= a->until))
        return 0;
    if (!a->stuck && a->start != ebpfMonProcStart(pid)) {
        memset(a, 0, sizeof(*a));
        return 0;
    }
    a->used = now;
    return 1;
}

static uid_t getOwner(pid_t pid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) ? 0 : st.st_uid;
}

/* NULL: it has no entry, and nothing against it. */
static user *findUser(uid_t uid)
{
    for (unsigned i = 0; i < USERS; i++)
        if (all.users[i].isUsed && all.users[i].uid == uid)
            return &all.users[i];
    return NULL;
}

/* Nonzero: its user, or all together, have as many readers stuck as is allowed. */
static int isCrowded(pid_t pid)
{
    const user *u;

    if (all.stuck >= STUCK_MAX)
        return 1;
    if (!all.stuck || all.trusted[(unsigned)pid & (TRUSTED - 1)] == pid)
        return 0;
    u = findUser(getOwner(pid));
    return u && u->stuck >= STUCK_USER;
}

/* Its charge brought up to date. When there are too many users they share the last place. */
static user *getUser(uid_t uid, uint64_t now)
{
    user *u = findUser(uid);

    for (unsigned i = 0; !u && i < USERS - 1; i++)
        if (!all.users[i].isUsed || (!all.users[i].stuck && now - all.users[i].at > SHARE_NS * SHARE_LEAK)) {
            u = &all.users[i];
            *u = (user){ .uid = uid, .isUsed = 1, .at = now };
        }
    if (!u) {
        u = &all.users[USERS - 1];
        u->isUsed = 1;
    }
    if (now > u->at) {
        uint64_t leak = (now - u->at) / SHARE_LEAK;

        u->charged = u->charged > leak ? u->charged - leak : 0;
        u->at = now;
    }
    return u;
}

static void noteCharges(void)
{
    all.isCharged = 0;
    for (unsigned i = 0; i < USERS; i++)
        all.isCharged |= all.users[i].isUsed && (all.users[i].stuck || all.users[i].charged);
}

/* How long a job may take. 0: it may not begin. */
static uint64_t findLimit(pid_t pid, uint64_t wanted, uint64_t now)
{
    const user *u;
    uint64_t left;

    if (isSetAside(pid, now) || isCrowded(pid))
        return 0;
    if (!all.isCharged)
        return wanted;
    u = getUser(getOwner(pid), now);
    left = u->charged < SHARE_NS ? SHARE_NS - u->charged : 0;
    noteCharges();
    if (left > wanted)
        left = wanted;
    return left > wanted / SHORTEST ? left : wanted / SHORTEST;
}

static void charge(pid_t pid, uint64_t ns, uint64_t now)
{
    getUser(getOwner(pid), now)->charged += ns;
    all.isCharged = 1;
}

static void setAside(reader *r, uint64_t now)
{
    account *a = makeAccount(r->pid, now);
    user *u;

    r->uid = getOwner(r->pid);
    u = getUser(r->uid, now);
    r->abandoned = 1;
    all.stuck++;
    u->stuck++;
    all.isCharged = 1;
    if (!a)
        return;
    if (a->until && now > a->until + FORGIVE_NS)
        a->times = 0;
    a->stuck++;
    a->until = now + (ASIDE_NS << a->times);
    if (a->times < ASIDE_STEPS)
        a->times++;
}

static void noteReturn(reader *r)
{
    account *a = findAccount(r->pid);
    user *u = getUser(r->uid, ebpfMonClockMonotonic());

    all.stuck--;
    if (u->stuck)
        u->stuck--;
    if (a && a->stuck)
        a->stuck--;
}

/* --- readers --------------------------------------------------------------------------------------------------- */

static struct timespec timeOf(uint64_t ns)
{
    return (struct timespec){ (time_t)(ns / EBPFMON_SECOND_NS), (long)(ns % EBPFMON_SECOND_NS) };
}

/* 0: there is one. -1: there was none for a while, and nobody knows this reader any more. */
static int awaitJob(reader *r)
{
    struct timespec until = timeOf(ebpfMonClockMonotonic() + IDLE_NS);
    reader **at;

    while (!r->job) {
        if (pthread_cond_timedwait(&r->wake, &all.lock, &until) == 0 || r->job)
            continue;
        for (at = &all.idle; *at && *at != r; at = &(*at)->next)
            ;
        if (*at) {
            *at = r->next;
            return -1;
        }
        until = timeOf(ebpfMonClockMonotonic() + IDLE_NS); /* its caller has not taken the result yet */
    }
    return 0;
}

static long countSleeps(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

static void *runReader(void *arg)
{
    reader *r = arg;
    long sleeps;

    isReader = 1;
    r->tid = (pid_t)syscall(SYS_gettid);
    pthread_setname_np(pthread_self(), "ebpfMonReader");
    pthread_mutex_lock(&all.lock);
    while (awaitJob(r) == 0) {
        r->began = ebpfMonClockMonotonic();
        pthread_mutex_unlock(&all.lock);
        sleeps = countSleeps();
        r->job->run(r->data);
        sleeps = countSleeps() - sleeps;
        pthread_mutex_lock(&all.lock);
        r->slept = sleeps != 0;
        r->finished = 1;
        if (r->abandoned) {
            noteReturn(r);
            break;
        }
        pthread_cond_signal(&r->done);
        r->job = NULL; /* the caller takes the result, and makes this reader idle */
    }
    pthread_mutex_unlock(&all.lock);
    if (r->abandoned)
        r->job->drop(r->data);
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
    pthread_attr_t attr;
    sigset_t none, before;
    pthread_t thread;
    int err;

    if (!r)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &clock);
    pthread_cond_init(&r->done, &clock);
    pthread_condattr_destroy(&clock);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &(struct sched_param){ .sched_priority = 0 });
    sigfillset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    err = pthread_create(&thread, &attr, runReader, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!err)
        return r;
    pthread_cond_destroy(&r->wake);
    pthread_cond_destroy(&r->done);
    free(r);
    return NULL;
}

/* Nonzero: the thread computes, or waits for a CPU: it is not stuck. */
static int isRunnable(pid_t tid)
{
    char path[64], text[256], *p;
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    p = strrchr(text, ')');
    return p && p[1] == ' ' && p[2] == 'R';
}

/* Waits for the job of this reader. 0: done. ETIMEDOUT: it does not answer. EAGAIN: it has not begun. */
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
            if (r->began && (now - r->began >= limit + RUNNABLE_NS || !isRunnable(r->tid)))
                return ETIMEDOUT;
            until = now + 10000000;
        }
        at = timeOf(until);
        pthread_cond_timedwait(&r->done, &all.lock, &at);
    }
    now = ebpfMonClockMonotonic();
    if (now - r->began > (r->slept ? SLOW_NS : LONG_NS))
        charge(r->pid, now - r->began, now);
    return 0;
}

static int runJob(reader *r, pid_t pid, const ebpfMonForeignJob *job, void *data, uint64_t limit)
{
    uint64_t began;
    int err;

    r->pid = pid;
    r->data = data;
    r->began = 0;
    r->finished = r->abandoned = 0;
    r->job = job;
    pthread_cond_signal(&r->wake);
    began = ebpfMonClockMonotonic();
    err = awaitReader(r, limit);
    if (err == 0) {
        return 0;
    }
    if (err == ETIMEDOUT) {
        charge(pid, ebpfMonClockMonotonic() - began, ebpfMonClockMonotonic());
        setAside(r, ebpfMonClockMonotonic());
    } else { /* as if it were stuck, but nobody is to blame */
        r->abandoned = 1;
        all.stuck++;
        r->pid = 0;
        r->uid = 0;
        getUser(0, ebpfMonClockMonotonic())->stuck++;
    }
    return err;
}

int ebpfMonForeignRun(pid_t pid, double seconds, const ebpfMonForeignJob *job, void *data)
{
    uint64_t limit;
    reader *r;
    int err = ETIMEDOUT;

    if (isReader) {
        job->run(data);
        return 0;
    }
    pthread_mutex_lock(&all.lock);
    limit = findLimit(pid, (uint64_t)(seconds * 1e9), ebpfMonClockMonotonic());
    r = limit ? all.idle : NULL;
    if (r) {
        all.idle = r->next;
    } else if (limit) {
        r = startReader();
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

int ebpfMonForeignIsAside(pid_t pid)
{
    int aside;

    pthread_mutex_lock(&all.lock);
    aside = isSetAside(pid, ebpfMonClockMonotonic()) || isCrowded(pid);
    pthread_mutex_unlock(&all.lock);
    return aside;
}

void ebpfMonForeignTrust(pid_t pid)
{
    pthread_mutex_lock(&all.lock);
    all.trusted[(unsigned)pid & (TRUSTED - 1)] = pid;
    pthread_mutex_unlock(&all.lock);
}

void ebpfMonForeignCharge(pid_t pid, uint64_t ns)
{
    pthread_mutex_lock(&all.lock);
    charge(pid, ns, ebpfMonClockMonotonic());
    pthread_mutex_unlock(&all.lock);
}

int ebpfMonForeignIsCharged(pid_t pid)
{
    uint64_t now = ebpfMonClockMonotonic();
    int over = 0;

    pthread_mutex_lock(&all.lock);
    if (all.isCharged) {
        const user *u = getUser(getOwner(pid), now);

        over = u->charged >= SHARE_NS;
    }
    pthread_mutex_unlock(&all.lock);
    return over;
}

unsigned ebpfMonForeignCountStuck(void)
{
    unsigned n;

    pthread_mutex_lock(&all.lock);
    n = all.stuck;
    pthread_mutex_unlock(&all.lock);
    return n;
}
