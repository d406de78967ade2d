/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that waits for a mutex is in the system call futex. Its first argument is the address of the mutex
 * (pthread_mutex_t of glibc begins with the futex). With priority inheritance, as Base makes them, the kernel keeps the
 * owner's tid in the futex (FUTEX_LOCK_PI, futex(2)). Without, glibc writes 2 into the futex when somebody waits, and
 * the owner behind it (struct __pthread_mutex_s). Who waits for the end of a thread waits until its tid is 0
 * (pthread_join_common.c).
 */
#include <ctype.h>
#include <linux/futex.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>

#include "code/stack.h"
#include "common/array.h"
#include "common/text.h"
#include "host/procInfo.h"
#include "host/procRead.h"
#include "host/syscallName.h"
#include "ioc/baseLayout.h"
#include "waits/waitFiles.h"
#include "waits/waitGraph.h"

#define THREADS_MAX 1024
#define LINKS_MAX   8   /* of a chain */
#define SHOWN_MAX   4   /* threads that wait for the first one */
#define WAITER_FRAMES 5 /* functions of a thread that waits for another one */
#define MUTEX_KINDS 3   /* PTHREAD_MUTEX_…: 0 to 3; with 16 robust, with 32 priority inheritance */
#define PRIO_INHERIT 32
#define SHARED      128 /* PTHREAD_MUTEX_PSHARED_BIT */
#define GIL_COND    32  /* in struct _gil_runtime_state */
#define GIL_INTERVAL_MAX 1000000000 /* us: sys.setswitchinterval() */
#define PYTHON_THREAD_WORDS 64

/* --- threads ---------------------------------------------------------------------------------------------------- */

/* Name and state. 0, or -1. */
static int readStat(pid_t pid, ebpfMonWaitThread *t)
{
    char buf[1024], *begin, *end;

    if (ebpfMonProcReadTask(pid, t->tid, "stat", buf, sizeof(buf)) <= 0 || !(begin = strchr(buf, '(')) ||
        !(end = strrchr(buf, ')')) || end[1] != ' ')
        return -1;
    t->state = end[2];
    *end = 0;
    ebpfMonTextCopy(t->name, sizeof(t->name), begin + 1);
    return 0;
}

/* The system call and its arguments. */
static void readCall(pid_t pid, ebpfMonWaitThread *t)
{
    char buf[256], *p;

    t->call = -1;
    if (ebpfMonProcReadTask(pid, t->tid, "syscall", buf, sizeof(buf)) <= 0 || !isdigit((unsigned char)buf[0]))
        return;
    t->call = strtol(buf, &p, 10);
    for (int i = 0; i < 6; i++)
        t->arg[i] = strtoull(p, &p, 16);
}

/* How often it has run, and its tid in its own namespace. */
static void readStatus(pid_t pid, ebpfMonWaitThread *t)
{
    char buf[4096], *p;

    t->inner = t->tid;
    if (ebpfMonProcReadTask(pid, t->tid, "status", buf, sizeof(buf)) <= 0)
        return;
    if ((p = strstr(buf, "\nNSpid:")) != NULL) {
        char *end;

        p += strlen("\nNSpid:");
        for (long n = strtol(p, &end, 10); end > p; n = strtol(p, &end, 10)) {
            t->inner = (pid_t)n;
            p = end;
            if (*p == '\n')
                break;
        }
    }
    t->switches = ebpfMonProcFindNumber(buf, "\nvoluntary_ctxt_switches:", 0) +
                  ebpfMonProcFindNumber(buf, "\nnonvoluntary_ctxt_switches:", 0);
}

static const ebpfMonWaitThread *findThread(const ebpfMonWaitGraph *g, pid_t tid)
{
    for (size_t i = 0; tid && i < g->threads; i++)
        if (g->thread[i].tid == tid)
            return &g->thread[i];
    return NULL;
}

/* The thread with this tid in its own namespace. */
static const ebpfMonWaitThread *findInner(const ebpfMonWaitGraph *g, pid_t inner)
{
    for (size_t i = 0; i < g->threads; i++)
        if (g->thread[i].inner == inner)
            return &g->thread[i];
    return NULL;
}

/* Nonzero: it waits for a read-write lock that *inner has to write: for __wrphase_futex or __writers_futex of struct
 * __pthread_rwlock_arch_t, whose lowest bits are WRPHASE and WRLOCKED then (pthread_rwlock_common.c). */
static int readWriter(const ebpfMonWaitGraph *g, const ebpfMonWaitThread *t, pid_t *inner)
{
    enum { readers, wrphase = 2, writers, curWriter = 6, isShared, WORDS };
    uint32_t word[WORDS];

    for (unsigned at = wrphase; at <= writers; at++) {
        if (ebpfMonMemReadNow(g->pid, t->arg[0] - at * sizeof(word[0]), word, sizeof(word)) ||
            (word[readers] & 3) != 3 || word[isShared] || word[at] != (uint32_t)t->arg[2] || word[at] != 3)
            continue;
        *inner = (pid_t)word[curWriter];
        return findInner(g, *inner) != NULL;
    }
    return 0;
}

/* Nonzero: it waits for a mutex, and *inner has it; or for the end of the thread *inner. */
static int readOwner(const ebpfMonWaitGraph *g, ebpfMonWaitThread *t, pid_t *inner)
{
    int operation = (int)t->arg[1] & FUTEX_CMD_MASK, isWait = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
    uint32_t word[5], kind; /* __lock, __count, __owner, __nusers, __kind */

    if (t->call < 0 || t->call != ebpfMonSyscallNumber("futex") || !t->arg[0] ||
        ebpfMonMemReadNow(g->pid, t->arg[0], word, sizeof(word)))
        return 0;
    if (operation == FUTEX_LOCK_PI || operation == 13) { /* FUTEX_LOCK_PI2, since Linux 5.14 */
        *inner = (pid_t)(word[0] & FUTEX_TID_MASK);
        return *inner != 0;
    }
    *inner = (pid_t)word[0];
    t->isEnd = isWait && !(t->arg[1] & FUTEX_PRIVATE_FLAG) && (uint32_t)t->arg[2] == word[0] && *inner != t->inner &&
               findInner(g, *inner);
    t->isReadWrite = isWait && !t->isEnd && readWriter(g, t, inner);
    if (t->isEnd || t->isReadWrite)
        return 1;
    *inner = (pid_t)word[2];
    kind = word[4] & ~(uint32_t)SHARED;
    return isWait && (uint32_t)t->arg[2] == 2 && word[0] == 2 && word[2] && word[3] == 1 && kind <= MUTEX_KINDS &&
           (kind == 1 ? word[1] > 0 : word[1] == 0);
}

static void findOwners(ebpfMonWaitGraph *g)
{
    for (size_t i = 0; i < g->threads; i++) {
        ebpfMonWaitThread *t = &g->thread[i];
        const ebpfMonWaitThread *owner;
        int isShared = !(t->arg[1] & FUTEX_PRIVATE_FLAG), isOurs = t->inner == t->tid;
        pid_t inner;

        if (t->state != 'S' || !readOwner(g, t, &inner))
            continue;
        t->mutex = t->arg[0];
        t->isTimed = t->arg[3] != 0;
        /* the number may be of another namespace */
        owner = isShared && !isOurs && !t->isEnd ? NULL : findInner(g, inner);
        t->owner = owner ? owner->tid : 0;
        /* A thread that came after the list was read is in the next list. */
        t->ended = owner || g->threads == THREADS_MAX || isShared ? 0 : inner;
        t->far = isShared && isOurs && !owner ? inner : 0;
    }
}

static void readMutexes(ebpfMonWaitGraph *g)
{
    const ebpfMonCatalogue *cat = g->cat;
    uint64_t *record = malloc((cat->count + 1u) * sizeof(*record));

    for (uint32_t i = 0; record && i < cat->count; i++)
        record[i] = cat->rec[i].addr;
    ebpfMonMemFlush(g->mem);
    ebpfMonMutexesFree(g->mutexes);
    g->mutexes = record ? ebpfMonMutexesRead(g->mem, cat->base, record, cat->count, cat->common.lset) : NULL;
    free(record);
}

/* Who has the mutex of EPICS Base with this id. 0: nobody, or it is not known. */
static pid_t readMutexOwner(const ebpfMonWaitGraph *g, uint64_t id)
{
    const ebpfMonMutex *m = g->mutexes ? ebpfMonMutexesFind(g->mutexes, id) : NULL;
    const ebpfMonWaitThread *owner;
    uint32_t word[5];

    if (!m || ebpfMonMemReadNow(g->pid, m->id, word, sizeof(word)) || (word[4] & ~(uint32_t)PRIO_INHERIT) > MUTEX_KINDS)
        return 0;
    owner = findInner(g, (pid_t)(word[4] & PRIO_INHERIT ? word[0] & FUTEX_TID_MASK : word[0] ? word[2] : 0));
    return owner ? owner->tid : 0;
}

/* A thread that waits for the GIL of Python is in pthread_cond_timedwait (take_gil, Python/ceval_gil.h): the futex is
 * in a pthread_cond_t of glibc, behind the rest of struct _gil_runtime_state. Who has the GIL is in it; since Python
 * 3.11 his PyThreadState has pthread_t and tid side by side. Of an older one it is not known. */
static void findPythonOwner(const ebpfMonWaitGraph *g, ebpfMonWaitThread *t)
{
    static const uint8_t inCond[] = { 40, 44, 32, 36 }; /* __g_signals; the last two: since glibc 2.41 */
    struct { uint64_t interval, holder; uint32_t locked, pad; uint64_t switches; } gil;
    uint64_t word[PYTHON_THREAD_WORDS];

    if (t->arg[0] - g->python.address >= g->python.size)
        return;
    for (unsigned i = 0; i < sizeof(inCond) && !t->mutex; i++) {
        uint64_t at = t->arg[0] - inCond[i] - GIL_COND;

        if (at % 8 || ebpfMonMemReadNow(g->pid, at, &gil, sizeof(gil)) || gil.locked != 1 || !gil.interval ||
            gil.interval > GIL_INTERVAL_MAX || ebpfMonMemReadNow(g->pid, gil.holder, word, sizeof(word)))
            continue;
        for (unsigned k = 1; k < PYTHON_THREAD_WORDS; k++) {
            const ebpfMonWaitThread *owner = word[k] <= INT32_MAX && word[k - 1] > INT32_MAX && word[k - 1] % 64 == 0 ?
                                             findInner(g, (pid_t)word[k]) : NULL;

            if (!owner)
                continue;
            t->mutex = at;
            t->owner = owner->tid;
            t->switches = gil.switches; /* it wakes 200 times a second, and goes on waiting until this number changes */
            break;
        }
    }
}

/* Threads that wait for no mutex, but for what another thread has. */
static void findOtherOwners(ebpfMonWaitGraph *g)
{
    if (g->asynAt)
        ebpfMonAsynPortsRead(&g->asyn, g->mem, g->asynAt);
    if (g->asyn.requests && !g->mutexes)
        readMutexes(g);
    for (size_t i = 0; i < g->threads; i++) {
        ebpfMonWaitThread *t = &g->thread[i];
        const ebpfMonAsynRequest *r;

        if (t->state != 'S' || t->mutex || t->call < 0 || t->call != ebpfMonSyscallNumber("futex"))
            continue;
        if (g->python.address)
            findPythonOwner(g, t);
        if ((r = ebpfMonAsynPortsFindThread(&g->asyn, g->mem, t->arg[0])) == NULL)
            continue;
        t->mutex = g->asyn.port[r->port].lock;
        t->owner = readMutexOwner(g, t->mutex);
        t->isTimed = r->isTimed;
    }
}

/* Where asyn and Python are, once for each IOC. */
static void findLibraries(ebpfMonWaitGraph *g, pid_t pid)
{
    static const char *const python = "_PyRuntime";

    if (g->isSearched)
        return;
    g->isSearched = 1;
    g->asynAt = ebpfMonAsynPortsFind(pid);
    ebpfMonVariablesFind(pid, NULL, &python, 1, &g->python);
}

int ebpfMonWaitGraphRead(ebpfMonWaitGraph *g, pid_t pid, ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    ebpfMonWaitGraph before = *g;
    int *tids, count = ebpfMonProcListNumbers(pid, "task", UINT_MAX, &tids);

    if (count < 0)
        return -1;
    g->pid = pid;
    g->mem = mem;
    g->cat = cat;
    g->thread = NULL;
    g->threads = g->room = 0;
    for (int i = 0; i < count && g->threads < THREADS_MAX; i++) {
        ebpfMonWaitThread t = { .tid = tids[i] };

        if (readStat(pid, &t) ||
            ebpfMonArrayGrow(&g->thread, &g->room, g->threads + 1, 64, sizeof(*g->thread)))
            continue;
        readCall(pid, &t);
        readStatus(pid, &t);
        g->thread[g->threads++] = t;
    }
    free(tids);
    findLibraries(g, pid);
    findOwners(g);
    findOtherOwners(g);
    for (size_t i = 0; i < g->threads; i++) {
        ebpfMonWaitThread *t = &g->thread[i];
        const ebpfMonWaitThread *old = findThread(&before, t->tid);

        t->isSame = old && t->mutex && old->mutex == t->mutex && old->owner == t->owner && old->ended == t->ended &&
                    old->far == t->far && old->switches == t->switches;
    }
    free(before.thread);
    return 0;
}

void ebpfMonWaitGraphClear(ebpfMonWaitGraph *g)
{
    free(g->thread);
    ebpfMonMutexesFree(g->mutexes);
    ebpfMonAsynPortsClear(&g->asyn);
    *g = (ebpfMonWaitGraph){ .isSearched = g->isSearched, .asynAt = g->asynAt, .python = g->python };
}

pid_t ebpfMonWaitGraphFindCycle(const ebpfMonWaitGraph *g, pid_t tid)
{
    const ebpfMonWaitThread *t = findThread(g, tid);
    pid_t least = tid;

    for (size_t n = 0; t && n <= g->threads; n++) {
        if (!t->owner || !t->isSame || t->isTimed)
            return 0;
        if (t->tid < least)
            least = t->tid;
        if (t->owner == tid)
            return least;
        t = findThread(g, t->owner);
    }
    return 0;
}

/* --- what a thread waits for ------------------------------------------------------------------------------------ */

/* "the lock set of REC", "port L0", "a mutex of asynManager.c:602", "a mutex"; "the end of cbLow". */
static void nameMutex(ebpfMonWaitGraph *g, const ebpfMonWaitThread *t, char *text, size_t size)
{
    const ebpfMonWaitThread *owner = findThread(g, t->owner);
    uint64_t address = t->mutex;
    const ebpfMonMutex *m;
    char file[256];
    long record;

    if (t->isEnd || t->isReadWrite) {
        snprintf(text, size, t->isEnd ? "the end of %s" : "a read-write lock", owner ? owner->name : "a thread");
        return;
    }
    if (!g->mutexes)
        readMutexes(g);
    m = g->mutexes ? ebpfMonMutexesFind(g->mutexes, address) : NULL;
    for (unsigned i = 0; m && i < g->asyn.ports; i++)
        if (g->asyn.port[i].lock == m->node) {
            snprintf(text, size, "port %s", g->asyn.port[i].name);
            return;
        }
    if (address - g->python.address < g->python.size) {
        snprintf(text, size, "the GIL of Python");
        return;
    }
    record = m && m->record ? ebpfMonCatalogueFindAddr(g->cat, m->record) : -1;
    snprintf(text, size, "a mutex");
    if (record >= 0) {
        snprintf(text, size, "the lock set of %s", ebpfMonCatalogueName(g->cat, (uint32_t)record));
    } else if (m && ebpfMonMemStr(g->mem, m->file, file, sizeof(file)) == 0) {
        const char *slash = strrchr(file, '/');

        ebpfMonTextClean(file, sizeof(file));
        snprintf(text, size, "a mutex of %.60s:%d", slash ? slash + 1 : file, m->line);
    }
}

/* The functions that are not of the C library, libCom, or the linker: "most" of them, the first one with its file. */
static void addPlace(pid_t pid, pid_t tid, unsigned most, char *text, size_t size)
{
    ebpfMonStackStart start = { .returns = 0 };
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    unsigned count = ebpfMonStackGet(pid, tid, &start, frame), shown = 0;

    for (unsigned i = 0; i < count && shown < most; i++) {
        const ebpfMonFrame *f = &frame[i];

        if (!f->name[0] || strncmp(f->file, "libc.", 5) == 0 || strncmp(f->file, "libc-", 5) == 0 ||
            strncmp(f->file, "libpthread", 10) == 0 || strncmp(f->file, "libCom.", 7) == 0 ||
            strncmp(f->file, "ld-", 3) == 0 || strncmp(f->name, "epics", 5) == 0)
            continue;
        if (shown++)
            ebpfMonTextAdd(text, size, " < %.60s", f->name);
        else
            ebpfMonTextAdd(text, size, ", at %.60s (%s)", f->name, f->file);
    }
}

/* The file for which it waits in poll or select, and to read or write it; -1: for several, or none. */
static int findPolled(pid_t pid, const char *call, const uint64_t *arg, int *isWrite)
{
    uint64_t bits[FD_SETSIZE / 64];
    int found = -1, count = 0;
    struct pollfd poll;

    if ((strcmp(call, "poll") == 0 || strcmp(call, "ppoll") == 0) && arg[1] == 1 &&
        ebpfMonMemReadNow(pid, arg[0], &poll, sizeof(poll)) == 0) {
        *isWrite = (poll.events & POLLOUT) != 0;
        return poll.fd;
    }
    for (int set = 1; set <= 2 && (strcmp(call, "select") == 0 || strcmp(call, "pselect6") == 0); set++) {
        if (!arg[set] || arg[0] > FD_SETSIZE || ebpfMonMemReadNow(pid, arg[set], bits, (arg[0] + 63) / 64 * 8))
            continue;
        for (unsigned i = 0; i < arg[0]; i++)
            if (bits[i / 64] >> i % 64 & 1) {
                found = (int)i;
                *isWrite = set == 2;
                count++;
            }
    }
    return count == 1 ? found : -1;
}

/* "waits in recvfrom for 10.1.2.3:502", "sleeps", "is stopped …": for what a thread waits that is no mutex. */
static void describeEnd(const ebpfMonWaitGraph *g, const ebpfMonWaitThread *t, char *text, size_t size)
{
    char call[32] = "", wchan[64], file[240];
    int polled, isWrite = 0;

    if (t->call >= 0)
        ebpfMonSyscallName(t->call, call, sizeof(call));
    ebpfMonProcReadTask(g->pid, t->tid, "wchan", wchan, sizeof(wchan));
    if (t->state == 'T' || t->state == 't')
        snprintf(text, size, "is stopped by a signal or a debugger");
    else if (t->state == 'R')
        snprintf(text, size, "runs");
    else if (ebpfMonWaitFileName(g->pid, call, t->arg, file, sizeof(file)))
        snprintf(text, size, "waits in %s for %s", call, file);
    else if ((polled = findPolled(g->pid, call, t->arg, &isWrite)) >= 0) {
        ebpfMonWaitFileName(g->pid, isWrite ? "write" : "read", &(uint64_t){ (unsigned)polled }, file, sizeof(file));
        snprintf(text, size, "waits in %s for %s", call, file);
    } else if (strcmp(call, "wait4") == 0 && (pid_t)t->arg[0] > 0 && t->inner == t->tid &&
               ebpfMonProcCommand((pid_t)t->arg[0], file, sizeof(file)) == 0) {
        snprintf(text, size, "waits for the end of %.60s (pid %d)", file, (int)t->arg[0]);
    } else if (strcmp(call, "futex") == 0)
        snprintf(text, size, "waits for an event");
    else if (strstr(call, "nanosleep"))
        snprintf(text, size, "sleeps");
    else
        snprintf(text, size, "is in %s", call[0] ? call : "the kernel");
    if (t->state == 'D')
        ebpfMonTextAdd(text, size, " (%.40s: no signal wakes it)", wchan[0] ? wchan : "in the kernel");
    if (t->state != 'T')
        addPlace(g->pid, t->tid, 1, text, size);
}

/* --- the sentence ----------------------------------------------------------------------------------------------- */

static void addWaiters(const ebpfMonWaitGraph *g, pid_t tid, char *text, size_t size)
{
    unsigned count = 0;

    for (size_t i = 0; i < g->threads; i++) {
        if (g->thread[i].owner != tid)
            continue;
        if (count++ < SHOWN_MAX)
            ebpfMonTextAdd(text, size, "%s%s", count == 1 ? "; for it wait: " : ", ", g->thread[i].name);
    }
    if (count > SHOWN_MAX)
        ebpfMonTextAdd(text, size, " and %u more", count - SHOWN_MAX);
}

void ebpfMonWaitGraphAddWaiters(ebpfMonWaitGraph *g, pid_t tid, char *text, size_t size)
{
    char what[120];

    for (size_t i = 0; i < g->threads; i++) {
        const ebpfMonWaitThread *t = &g->thread[i], *at = findThread(g, t->owner);

        for (int links = 0; at && at->tid != tid && links < LINKS_MAX; links++)
            at = findThread(g, at->owner);
        if (!at || t->tid == tid || at->tid != tid)
            continue;
        nameMutex(g, t, what, sizeof(what));
        ebpfMonTextAdd(text, size, "  %s waits for %s", t->name, what);
        addPlace(g->pid, t->tid, WAITER_FRAMES, text, size);
        ebpfMonTextAdd(text, size, "\n");
    }
}

/* Who has a mutex that processes share. */
static void addFarOwner(const ebpfMonWaitThread *t, char *text, size_t size)
{
    char command[64], status[4096];

    if (ebpfMonProcCommand(t->far, command, sizeof(command)) == 0 &&
        ebpfMonProcReadText(t->far, "status", status, sizeof(status)) > 0)
        ebpfMonTextAdd(text, size, ", which %s (pid %d) has", command,
                       (int)ebpfMonProcFindNumber(status, "\nTgid:", 0));
    else if (t->isSame)
        ebpfMonTextAdd(text, size, ", whose owner has ended (thread %d)", (int)t->far);
}

int ebpfMonWaitGraphDescribe(ebpfMonWaitGraph *g, pid_t tid, char *text, size_t size, char *brief, size_t briefSize)
{
    const ebpfMonWaitThread *t = findThread(g, tid), *owner;
    pid_t seen[LINKS_MAX];
    int links = 0;
    char one[300], call[120];

    text[0] = brief[0] = 0;
    while (t && t->owner && links < LINKS_MAX && (owner = findThread(g, t->owner)) != NULL) {
        int isCycle = 0;

        seen[links++] = t->tid;
        nameMutex(g, t, one, sizeof(one));
        ebpfMonTextAdd(text, size, "%s%s waits for %s", links == 1 ? "" : "; ", t->name, one);
        if (!t->isEnd)
            ebpfMonTextAdd(text, size, ", which %s has", owner->name);
        for (int i = 0; i < links; i++)
            isCycle |= seen[i] == owner->tid;
        if (isCycle) {
            isCycle = ebpfMonWaitGraphFindCycle(g, owner->tid) != 0;
            ebpfMonTextAdd(text, size, "%s", isCycle ? ": deadlock" : "");
            snprintf(brief, briefSize, isCycle ? "deadlock of %s and %s" : "%s and %s wait", owner->name, t->name);
            return isCycle;
        }
        t = owner;
    }
    if (!t)
        return 0;
    if (t->mutex && t->ended) {
        nameMutex(g, t, one, sizeof(one));
        ebpfMonTextAdd(text, size, "%s%s waits for %s%s", links ? "; " : "", t->name, one,
                       t->isSame ? ", whose owner has ended" : "");
        if (t->isSame)
            ebpfMonTextAdd(text, size, " (thread %d)", (int)t->ended);
        snprintf(brief, briefSize, "%s: the owner of its mutex ended", t->name);
        return t->isSame && !t->isTimed;
    }
    if (t->mutex) {
        nameMutex(g, t, call, sizeof(call));
        snprintf(one, sizeof(one), "waits for %s", call);
        if (t->far)
            addFarOwner(t, one, sizeof(one));
    } else {
        describeEnd(g, t, one, sizeof(one));
    }
    ebpfMonTextAdd(text, size, "%s%s %s", links ? "; " : "", t->name, one);
    addWaiters(g, tid, text, size);
    snprintf(brief, briefSize, "%s %s", t->name, one);
    return 0;
}

void ebpfMonWaitGraphAddPort(ebpfMonWaitGraph *g, uint32_t record, char *text, size_t size)
{
    const ebpfMonRecord *r = g->asyn.ports ? &g->cat->rec[record] : NULL;
    const ebpfMonField *f = r ? ebpfMonCatalogueFieldNamed(g->cat, r->rtype, "DPVT") : NULL;
    const ebpfMonWaitThread *owner;
    char why[300], brief[80];
    int isQueued, port;

    if (!f)
        return;
    port = ebpfMonAsynPortsFindRecord(&g->asyn, g->mem, r->addr, ebpfMonMemPtr(g->mem, r->addr + f->offset), &isQueued);
    if (port < 0)
        return;
    if (!g->mutexes)
        readMutexes(g);
    owner = findThread(g, readMutexOwner(g, g->asyn.port[port].lock));
    if (owner)
        ebpfMonWaitGraphDescribe(g, owner->tid, why, sizeof(why), brief, sizeof(brief));
    ebpfMonTextAdd(text, size, "; %sport %s, which %s has%s%s", isQueued ? "waits for " : "", g->asyn.port[port].name,
                   owner ? owner->name : "nobody", owner ? ": " : "", owner ? why : "");
}
