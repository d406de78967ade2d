/* SPDX-License-Identifier: BSD-3-Clause */
#include <bpf/libbpf.h>
#include <epicsAtomic.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/worker.h"
#include "probe/closer.h"

/* --- the folder --- */

#define NAME_SIZE  16
#define PATH_FD    (1u << 14) /* BPF_F_PATH_FD */
#define CREATE     6          /* FSCONFIG_CMD_CREATE of linux/mount.h. Old libcs do not allow to include that file
                               * beside sys/mount.h */
#define CLOEXEC    1          /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */

/* The part of union bpf_attr for BPF_OBJ_PIN in kernel 6.5. */
struct objPin {
    uint64_t pathname;
    uint32_t bpf_fd;
    uint32_t file_flags;
    int32_t  path_fd;
    uint32_t pad[16];
};

/* One per process: the header tells why. */
static struct {
    pthread_once_t once;
    int mount;    /* file descriptor of the folder; -1: there is none */
    int count;    /* atomic; number of links that were ever added. The name of a link is its number */
} folder = { .once = PTHREAD_ONCE_INIT, .mount = -1 };

static void openFolder(void)
{
    int fs = (int)syscall(SYS_fsopen, "bpf", CLOEXEC);

    if (fs < 0)
        return;
    if (syscall(SYS_fsconfig, fs, CREATE, NULL, NULL, 0) == 0)
        folder.mount = (int)syscall(SYS_fsmount, fs, CLOEXEC, 0);
    close(fs);
}

unsigned ebpfMonLinkFolderAdd(int fd)
{
    struct objPin pin;
    char name[NAME_SIZE];
    int number;

    pthread_once(&folder.once, openFolder);
    if (folder.mount < 0)
        return 0;
    number = epicsAtomicIncrIntT(&folder.count);
    snprintf(name, sizeof(name), "%u", (unsigned)number);
    memset(&pin, 0, sizeof(pin));
    pin.pathname = (uint64_t)(uintptr_t)name;
    pin.bpf_fd = (uint32_t)fd;
    pin.file_flags = PATH_FD;
    pin.path_fd = folder.mount;
    if (syscall(SYS_bpf, BPF_OBJ_PIN, &pin, sizeof(pin)))
        return 0;
    close(fd);
    return (unsigned)number;
}

/* Removes a link from the folder. The kernel then removes the probe soon, mostly within 10 ms. Until then its program
 * may run. */
static void removeLinkFolder(unsigned number)
{
    char name[NAME_SIZE];

    snprintf(name, sizeof(name), "%u", number);
    unlinkat(folder.mount, name, 0);
}

/* --- closing --- */

/* Plain POSIX threads, not those of EPICS: there can be many, they live for a short time, and they need a
 * small stack and no real-time priority. */

#define THREADS_MAX 32
#define STACK_BYTES (128u * 1024u)
#define IDLE_NS     (2 * EBPFMON_SECOND_NS) /* a thread ends if it has had nothing to close for so long */

typedef struct closeTask {
    struct closeTask *next;
    ebpfMonProbe probe;
    unsigned *left;       /* counts the probes that the caller still waits for; NULL: nobody waits */
} closeTask;

/* One per process: the header tells why. */
static struct {
    pthread_mutex_t lock; /* of all members */
    pthread_once_t  once;
    pthread_cond_t  more, done;
    closeTask *first, **last;
    unsigned unfinished;  /* queued, or being closed */
    unsigned threads;
    int isLeaving;
} closer = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void initialiseCloser(void)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&closer.more, &clock);
    pthread_cond_init(&closer.done, &clock);
    pthread_condattr_destroy(&clock);
    closer.last = &closer.first;
}

static void closeProbe(const ebpfMonProbe *probe)
{
    if (probe->inFolder)
        removeLinkFolder(probe->inFolder);
    else if (probe->link)
        bpf_link__destroy(probe->link);
    else
        close(probe->fd);
}

/* Takes the next probe, under the lock. NULL: there was nothing to close for IDLE_NS. */
static closeTask *takeNext(void)
{
    struct timespec until = ebpfMonClockTimespec(ebpfMonClockMonotonic() + IDLE_NS);
    closeTask *c;
    int late = 0;

    while (!closer.first && !late)
        late = pthread_cond_timedwait(&closer.more, &closer.lock, &until);
    c = closer.first;
    if (c) {
        closer.first = c->next;
        if (!closer.first)
            closer.last = &closer.first;
    }
    return c;
}

static void *runCloser(void *arg)
{
    closeTask *c;

    pthread_setname_np(pthread_self(), "ebpfMonClose");
    pthread_mutex_lock(&closer.lock);
    while ((c = takeNext()) != NULL) {
        pthread_mutex_unlock(&closer.lock);
        closeProbe(&c->probe);
        pthread_mutex_lock(&closer.lock);
        if (c->left)
            (*c->left)--;
        closer.unfinished--;
        pthread_cond_broadcast(&closer.done);
        free(c);
    }
    closer.threads--;
    pthread_mutex_unlock(&closer.lock);
    return NULL;
}

/* Starts as many threads as there are probes to close, up to THREADS_MAX. Under the lock. */
static void startThreads(void)
{
    while (closer.threads < THREADS_MAX && closer.threads < closer.unfinished &&
           ebpfMonPlainThreadStart(runCloser, NULL, STACK_BYTES) == 0)
        closer.threads++;
}

/* Queues the probes. If somebody waits for them ("left"), they go before all others. Probes in the folder need no
 * thread, so they are closed here; and so are those for which there is no memory or no thread. Under the lock. */
static void queueProbes(const ebpfMonProbe *probes, unsigned count, unsigned *left)
{
    closeTask **at = left ? &closer.first : closer.last;

    for (unsigned i = 0; i < count; i++) {
        closeTask *c;

        if (closer.isLeaving && !probes[i].inFolder)
            continue;
        c = probes[i].inFolder ? NULL : malloc(sizeof(*c));

        if (!c) {
            closeProbe(&probes[i]);
            continue;
        }
        *c = (closeTask){ .next = *at, .probe = probes[i], .left = left };
        *at = c;
        if (!c->next)
            closer.last = &c->next;
        at = &c->next;
        closer.unfinished++;
        if (left)
            (*left)++;
    }
    startThreads();
    pthread_cond_broadcast(&closer.more);
    while (closer.threads == 0 && closer.first) {
        closeTask *c = closer.first;

        closer.first = c->next;
        closeProbe(&c->probe);
        closer.unfinished--;
        if (c->left)
            (*c->left)--;
        free(c);
    }
    if (!closer.first)
        closer.last = &closer.first;
}

void ebpfMonCloserClose(const ebpfMonProbe *probes, unsigned count)
{
    unsigned left = 0;

    pthread_once(&closer.once, initialiseCloser);
    pthread_mutex_lock(&closer.lock);
    queueProbes(probes, count, &left);
    while (left)
        pthread_cond_wait(&closer.done, &closer.lock);
    pthread_mutex_unlock(&closer.lock);
}

void ebpfMonCloserCloseLater(const ebpfMonProbe *probes, unsigned count)
{
    pthread_once(&closer.once, initialiseCloser);
    pthread_mutex_lock(&closer.lock);
    queueProbes(probes, count, NULL);
    pthread_mutex_unlock(&closer.lock);
}

void ebpfMonCloserLeave(void)
{
    pthread_mutex_lock(&closer.lock);
    closer.isLeaving = 1;
    pthread_mutex_unlock(&closer.lock);
}

int ebpfMonCloserFinish(double seconds)
{
    struct timespec until = ebpfMonClockTimespec(ebpfMonClockMonotonic() + (uint64_t)(seconds * 1e9));
    int late = 0, left;

    pthread_once(&closer.once, initialiseCloser);
    pthread_mutex_lock(&closer.lock);
    while (closer.unfinished && !late)
        late = pthread_cond_timedwait(&closer.done, &closer.lock, &until);
    left = closer.unfinished != 0;
    pthread_mutex_unlock(&closer.lock);
    return left ? -1 : 0;
}
