/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that waits for a mutex is in the system call futex. Its first argument is the address of the mutex
 * (pthread_mutex_t of glibc begins with the futex). With priority inheritance, as Base makes them, the kernel keeps the
 * owner's tid in the futex (FUTEX_LOCK_PI, futex(2)). Without, glibc writes 2 into the futex when somebody waits, and
 * the owner behind it (struct __pthread_mutex_s).
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/stack.h"
#include "common/array.h"
#include "common/text.h"
#include "host/procInfo.h"
#include "host/procRead.h"
#include "host/syscallName.h"
#include "host/tcpSockets.h"
#include "ioc/baseLayout.h"
#include "waits/waitGraph.h"

#define THREADS_MAX 1024
#define LINKS_MAX   8   /* of a chain */
#define SHOWN_MAX   4   /* threads that wait for the first one */
#define MUTEX_KINDS 3   /* PTHREAD_MUTEX_…: 0 to 3; with 16 robust, with 32 priority inheritance */
#define ALL_STATES  0xffffu

/* --- threads ---------------------------------------------------------------------------------------------------- */

static const char *readTask(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "task/%d/%s", (int)tid, name);
    return ebpfMonProcReadText(pid, path, buf, size) > 0 ? buf : NULL;
}

/* Name and state. 0, or -1. */
static int readStat(pid_t pid, ebpfMonWaitThread *t)
{
    char buf[1024], *begin, *end;

    if (!readTask(pid, t->tid, "stat", buf, sizeof(buf)) || !(begin = strchr(buf, '(')) ||
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
    if (!readTask(pid, t->tid, "syscall", buf, sizeof(buf)) || !isdigit((unsigned char)buf[0]))
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
    if (!readTask(pid, t->tid, "status", buf, sizeof(buf)))
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
    if ((p = strstr(buf, "\nvoluntary_ctxt_switches:")) != NULL)
        t->switches = strtoull(p + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
    if ((p = strstr(buf, "\nnonvoluntary_ctxt_switches:")) != NULL)
        t->switches += strtoull(p + strlen("\nnonvoluntary_ctxt_switches:"), NULL, 10);
}

static const ebpfMonWaitThread *findThread(const ebpfMonWaitGraph *g, pid_t tid)
{
    for (size_t i = 0; tid && i < g->threads; i++)
        if (g->thread[i].tid == tid)
            return &g->thread[i];
    return NULL;
}

/* Nonzero: it waits for a mutex, and *inner has it. */
static int readOwner(const ebpfMonWaitGraph *g, const ebpfMonWaitThread *t, pid_t *inner)
{
    int operation = (int)t->arg[1] & FUTEX_CMD_MASK;
    uint32_t word[5]; /* __lock, __count, __owner, __nusers, __kind */

    if (t->call < 0 || t->call != ebpfMonSyscallNumber("futex") || !t->arg[0] ||
        ebpfMonMemReadNow(g->pid, t->arg[0], word, sizeof(word)))
        return 0;
    if (operation == FUTEX_LOCK_PI || operation == 13) { /* FUTEX_LOCK_PI2, since Linux 5.14 */
        *inner = (pid_t)(word[0] & FUTEX_TID_MASK);
        return *inner != 0;
    }
    *inner = (pid_t)word[2];
    return (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) && (uint32_t)t->arg[2] == 2 && word[0] == 2 &&
           word[2] && word[3] == 1 && word[4] <= MUTEX_KINDS && (word[4] == 1 ? word[1] > 0 : word[1] == 0);
}

/* The thread with this tid in its own namespace. */
static const ebpfMonWaitThread *findInner(const ebpfMonWaitGraph *g, pid_t inner)
{
    for (size_t i = 0; i < g->threads; i++)
        if (g->thread[i].inner == inner)
            return &g->thread[i];
    return NULL;
}

static void findOwners(ebpfMonWaitGraph *g)
{
    for (size_t i = 0; i < g->threads; i++) {
        ebpfMonWaitThread *t = &g->thread[i];
        const ebpfMonWaitThread *owner;
        pid_t inner;

        if (t->state != 'S' || !readOwner(g, t, &inner))
            continue;
        t->mutex = t->arg[0];
        t->isTimed = t->arg[3] != 0;
        owner = findInner(g, inner);
        t->owner = owner ? owner->tid : 0;
        /* A mutex that processes share may be another one's. A thread that came after the list was read is in the next
         * list. */
        t->ended = owner || g->threads == THREADS_MAX || !(t->arg[1] & FUTEX_PRIVATE_FLAG) ? 0 : inner;
    }
}

static int compareThreads(const void *left, const void *right)
{
    pid_t l = ((const ebpfMonWaitThread *)left)->tid, r = ((const ebpfMonWaitThread *)right)->tid;

    return (l > r) - (l < r);
}

int ebpfMonWaitGraphRead(ebpfMonWaitGraph *g, pid_t pid)
{
    ebpfMonWaitGraph before = *g;
    struct dirent *entry;
    char path[32];
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    if (!dir)
        return -1;
    g->pid = pid;
    g->thread = NULL;
    g->threads = g->room = 0;
    while ((entry = readdir(dir)) != NULL && g->threads < THREADS_MAX) {
        ebpfMonWaitThread t = { .tid = (pid_t)atoi(entry->d_name) };

        if (t.tid <= 0 || readStat(pid, &t) ||
            ebpfMonArrayGrow(&g->thread, &g->room, g->threads + 1, 64, sizeof(*g->thread)))
            continue;
        readCall(pid, &t);
        readStatus(pid, &t);
        g->thread[g->threads++] = t;
    }
    closedir(dir);
    if (g->threads)
        qsort(g->thread, g->threads, sizeof(*g->thread), compareThreads);
    findOwners(g);
    for (size_t i = 0; i < g->threads; i++) {
        ebpfMonWaitThread *t = &g->thread[i];
        const ebpfMonWaitThread *old = findThread(&before, t->tid);

        t->isSame = old && t->mutex && old->mutex == t->mutex && old->owner == t->owner && old->ended == t->ended &&
                    old->switches == t->switches;
    }
    free(before.thread);
    return 0;
}

void ebpfMonWaitGraphClear(ebpfMonWaitGraph *g)
{
    free(g->thread);
    ebpfMonMutexesFree(g->mutexes);
    *g = (ebpfMonWaitGraph){ .pid = 0 };
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

static void readMutexes(ebpfMonWaitGraph *g, ebpfMonMem *mem, const ebpfMonCatalogue *cat)
{
    uint64_t *record = malloc((cat->count + 1u) * sizeof(*record));

    for (uint32_t i = 0; record && i < cat->count; i++)
        record[i] = cat->rec[i].addr;
    ebpfMonMemFlush(mem);
    ebpfMonMutexesFree(g->mutexes);
    g->mutexes = record ? ebpfMonMutexesRead(mem, cat->base, record, cat->count, cat->common.lset) : NULL;
    free(record);
}

/* "the lock set of REC", "a mutex of asynManager.c:602", "a mutex". */
static void nameMutex(ebpfMonWaitGraph *g, ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t address, char *text,
                      size_t size)
{
    const ebpfMonMutex *m;
    char file[256];
    long record;

    if (!g->mutexes)
        readMutexes(g, mem, cat);
    m = g->mutexes ? ebpfMonMutexesFind(g->mutexes, address) : NULL;
    record = m && m->record ? ebpfMonCatalogueFindAddr(cat, m->record) : -1;
    snprintf(text, size, "a mutex");
    if (record >= 0) {
        snprintf(text, size, "the lock set of %s", ebpfMonCatalogueName(cat, (uint32_t)record));
    } else if (m && ebpfMonMemStr(mem, m->file, file, sizeof(file)) == 0) {
        const char *slash = strrchr(file, '/');

        ebpfMonTextClean(file, sizeof(file));
        snprintf(text, size, "a mutex of %.60s:%d", slash ? slash + 1 : file, m->line);
    }
}

typedef struct {
    unsigned long inode;
    char text[100];
} socketPeer;

static int findPeer(void *arg, const ebpfMonTcpRow *row)
{
    socketPeer *p = arg;
    char addr[INET6_ADDRSTRLEN] = "?";

    if (row->inode != p->inode)
        return 0;
    inet_ntop(row->v4 ? AF_INET : AF_INET6, row->v4 ? (const void *)&row->remote : row->remote6, addr, sizeof(addr));
    if (row->remotePort)
        snprintf(p->text, sizeof(p->text), "%s:%u", addr, (unsigned)ntohs(row->remotePort));
    else
        snprintf(p->text, sizeof(p->text), "connections to port %u", (unsigned)ntohs(row->localPort));
    return 1;
}

/* Another process that has this pipe. */
static void findPipePeer(pid_t pid, const char *pipe, char *text, size_t size)
{
    pid_t *pids = NULL;
    int count = ebpfMonProcList(&pids);
    char path[300], link[64], comm[32];

    for (int i = 0; i < count; i++) {
        struct dirent *entry;
        int isFound = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pids[i]);
        dir = pids[i] == pid ? NULL : opendir(path);
        while (dir && !isFound && (entry = readdir(dir)) != NULL) {
            ssize_t n;

            snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pids[i], entry->d_name);
            n = readlink(path, link, sizeof(link) - 1);
            link[n > 0 ? n : 0] = 0;
            isFound = strcmp(link, pipe) == 0;
        }
        if (dir)
            closedir(dir);
        if (!isFound)
            continue;
        if (ebpfMonProcReadText(pids[i], "comm", comm, sizeof(comm)) <= 0)
            comm[0] = 0;
        comm[strcspn(comm, "\n")] = 0;
        ebpfMonTextAdd(text, size, "%s%.20s (pid %d)", text[0] ? ", " : " of ", comm, (int)pids[i]);
        if (strlen(text) > size / 2)
            break;
    }
    free(pids);
}

/* What the file with this number is: the peer of a socket or a pipe, or a path. */
static void nameFile(pid_t pid, unsigned file, char *text, size_t size)
{
    char path[64], link[200], peers[120] = "";
    socketPeer peer = { .inode = 0 };
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, file);
    n = readlink(path, link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = 0;
    ebpfMonTextClean(link, sizeof(link));
    if (sscanf(link, "socket:[%lu]", &peer.inode) == 1 && ebpfMonTcpRows(pid, ALL_STATES, findPeer, &peer))
        snprintf(text, size, "%s", peer.text);
    else if (strncmp(link, "pipe:", 5) == 0) {
        findPipePeer(pid, link, peers, sizeof(peers));
        snprintf(text, size, "a pipe%s", peers);
    } else {
        snprintf(text, size, "%s", peer.inode ? "a socket" : link[0] ? link : "a file");
    }
}

/* The system calls that wait for the file that is their first argument. */
static int isFileCall(const char *call)
{
    static const char *const calls[] = {
        "read", "write", "readv", "writev", "pread64", "pwrite64", "recvfrom", "sendto", "recvmsg", "sendmsg",
        "connect", "accept", "accept4", "fsync", "fdatasync", "ioctl", "fcntl", "flock"
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(call, calls[i]) == 0)
            return 1;
    return 0;
}

/* The first function that is not of the C library, of libCom, or the linker. */
static void addPlace(pid_t pid, pid_t tid, char *text, size_t size)
{
    ebpfMonStackStart start = { .returns = 0 };
    ebpfMonFrame frame[EBPFMON_STACK_MAX];
    unsigned count = ebpfMonStackGet(pid, tid, &start, frame);

    for (unsigned i = 0; i < count; i++) {
        const ebpfMonFrame *f = &frame[i];

        if (!f->name[0] || strncmp(f->file, "libc.", 5) == 0 || strncmp(f->file, "libc-", 5) == 0 ||
            strncmp(f->file, "libpthread", 10) == 0 || strncmp(f->file, "libCom.", 7) == 0 ||
            strncmp(f->file, "ld-", 3) == 0 || strncmp(f->name, "epics", 5) == 0)
            continue;
        ebpfMonTextAdd(text, size, ", at %.60s (%s)", f->name, f->file);
        return;
    }
}

/* "waits in recvfrom for 10.1.2.3:502", "sleeps", "is stopped …": for what a thread waits that is no mutex. */
static void describeEnd(const ebpfMonWaitGraph *g, const ebpfMonWaitThread *t, char *text, size_t size)
{
    char call[32] = "", wchan[64] = "", file[240];
    struct { int32_t fd; int16_t events, revents; } poll;

    if (t->call >= 0)
        ebpfMonSyscallName(t->call, call, sizeof(call));
    if (!readTask(g->pid, t->tid, "wchan", wchan, sizeof(wchan)))
        wchan[0] = 0;
    if (t->state == 'T' || t->state == 't')
        snprintf(text, size, "is stopped by a signal or a debugger");
    else if (t->state == 'R')
        snprintf(text, size, "runs");
    else if (isFileCall(call)) {
        nameFile(g->pid, (unsigned)t->arg[0], file, sizeof(file));
        snprintf(text, size, "waits in %s for %s", call, file);
    } else if ((strcmp(call, "poll") == 0 || strcmp(call, "ppoll") == 0) && t->arg[1] == 1 &&
               ebpfMonMemReadNow(g->pid, t->arg[0], &poll, sizeof(poll)) == 0) {
        nameFile(g->pid, (unsigned)poll.fd, file, sizeof(file));
        snprintf(text, size, "waits in %s for %s", call, file);
    } else if (strcmp(call, "futex") == 0)
        snprintf(text, size, "waits for an event");
    else if (strstr(call, "nanosleep"))
        snprintf(text, size, "sleeps");
    else
        snprintf(text, size, "is in %s", call[0] ? call : "the kernel");
    if (t->state == 'D')
        ebpfMonTextAdd(text, size, " (%.40s: no signal wakes it)", wchan[0] ? wchan : "in the kernel");
    if (t->state != 'T')
        addPlace(g->pid, t->tid, text, size);
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

int ebpfMonWaitGraphDescribe(ebpfMonWaitGraph *g, ebpfMonMem *mem, const ebpfMonCatalogue *cat, pid_t tid,
                             char *text, size_t size, char *brief, size_t briefSize)
{
    const ebpfMonWaitThread *t = findThread(g, tid), *owner;
    pid_t seen[LINKS_MAX];
    int links = 0;
    char one[300];

    text[0] = brief[0] = 0;
    while (t && t->owner && links < LINKS_MAX && (owner = findThread(g, t->owner)) != NULL) {
        int isCycle = 0;

        seen[links++] = t->tid;
        nameMutex(g, mem, cat, t->mutex, one, sizeof(one));
        ebpfMonTextAdd(text, size, "%s%s waits for %s, which %s has", links == 1 ? "" : "; ", t->name, one,
                       owner->name);
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
        nameMutex(g, mem, cat, t->mutex, one, sizeof(one));
        ebpfMonTextAdd(text, size, "%s%s waits for %s%s", links ? "; " : "", t->name, one,
                       t->isSame ? ", whose owner has ended" : "");
        if (t->isSame)
            ebpfMonTextAdd(text, size, " (thread %d)", (int)t->ended);
        snprintf(brief, briefSize, "%s: the owner of its mutex ended", t->name);
        return t->isSame && !t->isTimed;
    }
    describeEnd(g, t, one, sizeof(one));
    ebpfMonTextAdd(text, size, "%s%s %s", links ? "; " : "", t->name, one);
    addWaiters(g, tid, text, size);
    snprintf(brief, briefSize, "%s %s", t->name, one);
    return 0;
}
