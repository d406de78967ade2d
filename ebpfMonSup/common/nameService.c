/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include <osiSock.h>

#include "common/clock.h"
#include "common/nameService.h"
#include "common/worker.h"

#define STACK_BYTES (512u * 1024u) /* modules of the name service are foreign code */
#define TEXT_SIZE   256

typedef struct question {
    void   (*ask)(struct question *q);
    char     text[TEXT_SIZE]; /* the question, or the answer */
    uid_t    uid;
    unsigned short port;
    struct sockaddr_in addr;
    int      isFound;
    pthread_mutex_t lock;     /* guards the next two */
    int      isDone, isLeft;  /* the answer is there; nobody waits for it any more */
    pthread_cond_t done;
} question;

static void freeQuestion(question *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->done);
    free(q);
}

static void *runQuestion(void *arg)
{
    question *q = arg;
    int isLeft;

    q->ask(q);
    pthread_mutex_lock(&q->lock);
    q->isDone = 1;
    isLeft = q->isLeft;
    pthread_cond_signal(&q->done);
    pthread_mutex_unlock(&q->lock);
    if (isLeft)
        freeQuestion(q);
    return NULL;
}

static question *newQuestion(void (*ask)(question *q), const char *text)
{
    question *q = calloc(1, sizeof(*q));
    pthread_condattr_t clock;

    if (!q)
        return NULL;
    q->ask = ask;
    snprintf(q->text, sizeof(q->text), "%s", text);
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&q->done, &clock);
    pthread_condattr_destroy(&clock);
    return q;
}

/* Found and unknown: the caller frees it. Silent: it is freed by its thread. */
static ebpfMonNameAnswer awaitAnswer(question *q, double seconds)
{
    struct timespec until = ebpfMonClockTimespec(ebpfMonClockMonotonic() + (uint64_t)(seconds * 1e9));
    int late = 0, isDone;

    if (ebpfMonPlainThreadStart(runQuestion, q, STACK_BYTES)) {
        freeQuestion(q);
        return ebpfMonNameSilent;
    }
    pthread_mutex_lock(&q->lock);
    while (!q->isDone && !late)
        late = pthread_cond_timedwait(&q->done, &q->lock, &until);
    isDone = q->isDone;
    q->isLeft = !isDone;
    pthread_mutex_unlock(&q->lock);
    return !isDone ? ebpfMonNameSilent : q->isFound ? ebpfMonNameFound : ebpfMonNameUnknown;
}

static void askUser(question *q)
{
    struct passwd entry, *user = NULL;
    char text[4096];

    q->isFound = getpwnam_r(q->text, &entry, text, sizeof(text), &user) == 0 && user;
    if (q->isFound)
        q->uid = user->pw_uid;
}

static void askUserName(question *q)
{
    struct passwd entry, *user = NULL;
    char text[4096];

    q->isFound = getpwuid_r(q->uid, &entry, text, sizeof(text), &user) == 0 && user;
    if (q->isFound)
        snprintf(q->text, sizeof(q->text), "%s", user->pw_name);
}

static void askAddress(question *q)
{
    q->isFound = aToIPAddr(q->text, q->port, &q->addr) == 0;
}

ebpfMonNameAnswer ebpfMonNameServiceFindUser(const char *name, double seconds, uid_t *uid)
{
    question *q = newQuestion(askUser, name);
    ebpfMonNameAnswer answer = q ? awaitAnswer(q, seconds) : ebpfMonNameSilent;

    if (!q || answer == ebpfMonNameSilent)
        return answer;
    *uid = q->uid;
    freeQuestion(q);
    return answer;
}

ebpfMonNameAnswer ebpfMonNameServiceFindUserName(uid_t uid, double seconds, char *buf, size_t size)
{
    question *q = newQuestion(askUserName, "");
    ebpfMonNameAnswer answer;

    if (!q)
        return ebpfMonNameSilent;
    q->uid = uid;
    answer = awaitAnswer(q, seconds);
    if (answer == ebpfMonNameSilent)
        return answer;
    if (answer == ebpfMonNameFound)
        snprintf(buf, size, "%s", q->text);
    freeQuestion(q);
    return answer;
}

ebpfMonNameAnswer ebpfMonNameServiceFindAddress(const char *text, unsigned short port, double seconds,
                                                struct sockaddr_in *addr)
{
    question *q = newQuestion(askAddress, text);
    ebpfMonNameAnswer answer;

    if (!q)
        return ebpfMonNameSilent;
    q->port = port;
    answer = awaitAnswer(q, seconds);
    if (answer == ebpfMonNameSilent)
        return answer;
    *addr = q->addr;
    freeQuestion(q);
    return answer;
}
