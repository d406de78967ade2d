/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "explore.h"
#include "memory.h"

#define STACK_SIZE  (256 << 10)
#define CHOICES_MAX 65536
#define STOPS_MAX   6 /* preemptions of a run at random */
#define STEPS_MAX   1000000 /* of one run: then it does not end */

typedef struct {
    char comm[16];
    void (*body)(void);
    ucontext_t context;
    char *stack;
    int isDone;
    int (*isReady)(void *);
    void *arg;
} Thread;

typedef struct {
    uint16_t chosen, count;
} Choice;

static struct {
    Thread thread[EXPLORE_THREADS_MAX];
    int count, self, bound, preemptions;
    unsigned steps;
    Choice path[CHOICES_MAX];
    unsigned length, at;
    int isRandom;                /* the choices are made at random … */
    uint64_t random;
    unsigned stop[STOPS_MAX];    /* … and the preemptions at these steps */
    int isLooking;               /* a thread's isReady() runs */
    int isTold;                  /* tell what happens */
    char failure[1024];
    jmp_buf whole;
    ucontext_t home;
} x = { .self = -1 };

/* --- threads ---------------------------------------------------------------------------------------------------- */

int exploreAddThread(const char *comm, void (*body)(void))
{
    Thread *t = &x.thread[x.count];

    if (x.count == EXPLORE_THREADS_MAX)
        abort();
    snprintf(t->comm, sizeof(t->comm), "%s", comm);
    t->body = body;
    if (!t->stack)
        t->stack = malloc(STACK_SIZE);
    return x.count++;
}

int exploreSelf(void)
{
    return x.self;
}

const char *exploreComm(int thread)
{
    return x.thread[thread].comm;
}

void exploreFail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(x.failure, sizeof(x.failure), format, args);
    va_end(args);
    x.self = -1;
    longjmp(x.whole, 1);
}

int exploreIsLooking(void)
{
    return x.isLooking;
}

static int isEnabled(int thread)
{
    const Thread *t = &x.thread[thread];
    int isReady;

    if (t->isDone || !t->isReady)
        return !t->isDone;
    x.isLooking = 1;
    isReady = t->isReady(t->arg);
    x.isLooking = 0;
    return isReady;
}

/* xorshift64*: the same numbers each time */
static unsigned drawNumber(unsigned below)
{
    x.random ^= x.random >> 12;
    x.random ^= x.random << 25;
    x.random ^= x.random >> 27;
    return (unsigned)((x.random * 0x2545f4914f6cdd1dull >> 33) % below);
}

/* Chooses one of "count" alternatives. "mayGoOn": the first one is that the present thread goes on. */
static unsigned choose(unsigned count, int mayGoOn)
{
    if (count <= 1)
        return 0;
    if (x.at == x.length) {
        unsigned chosen = 0;

        if (x.length == CHOICES_MAX)
            exploreFail("too many choices in one run");
        if (x.isRandom && !mayGoOn)
            chosen = drawNumber(count);
        for (unsigned i = 0; x.isRandom && mayGoOn && i < STOPS_MAX; i++)
            if (x.stop[i] == x.steps)
                chosen = 1 + drawNumber(count - 1);
        x.path[x.length++] = (Choice){ (uint16_t)chosen, (uint16_t)count };
    }
    if (x.path[x.at].count != count)
        exploreFail("a run is not like the one before it: it had %u choices here, and has %u", x.path[x.at].count,
                    count);
    return x.path[x.at++].chosen;
}

static void switchTo(int next)
{
    Thread *from = x.self >= 0 ? &x.thread[x.self] : NULL, *to = next >= 0 ? &x.thread[next] : NULL;

    if (from == to)
        return;
    x.self = next;
    swapcontext(from ? &from->context : &x.home, to ? &to->context : &x.home);
}

/* The present thread cannot go on, or has ended. */
static void leave(void)
{
    int enabled[EXPLORE_THREADS_MAX], n = 0, open = 0, next;

    for (int i = 0; i < x.count; i++) {
        open += !x.thread[i].isDone;
        if (isEnabled(i))
            enabled[n++] = i;
    }
    if (!n && open) {
        char who[EXPLORE_THREADS_MAX * 20] = "";

        for (int i = 0; i < x.count; i++)
            if (!x.thread[i].isDone)
                strcat(strcat(who, " "), x.thread[i].comm);
        exploreFail("no thread can go on; these have not ended:%s", who);
    }
    if (!n) {
        switchTo(-1);
        return;
    }
    next = enabled[choose((unsigned)n, 0)];
    if (x.isTold && next != x.self)
        printf("    %s goes on\n", x.thread[next].comm);
    switchTo(next);
}

/* Prints where an access is made. */
static void tellPlace(const void *pc)
{
    char command[256], line[512];
    FILE *out;

    snprintf(command, sizeof(command), "addr2line -i -f -s -e /proc/%d/exe %#lx", (int)getpid(),
             (unsigned long)(uintptr_t)pc - 1);
    out = popen(command, "r");
    for (unsigned i = 0; out && i < 6 && fgets(line, sizeof(line), out); i++) {
        line[strcspn(line, "\n")] = 0;
        printf("%s%s", i % 2 ? " (" : i ? " in " : "", line);
        if (i % 2)
            printf(")");
    }
    if (out)
        pclose(out);
}

/* Another thread may go on here: the present one is enabled, so that is a preemption. */
void exploreOffer(const char *what, const void *at, const void *pc)
{
    int others[EXPLORE_THREADS_MAX], n = 0;
    unsigned chosen;

    if (++x.steps > STEPS_MAX)
        exploreFail("it does not end");
    if (x.preemptions >= x.bound)
        return;
    for (int i = 0; i < x.count; i++)
        if (i != x.self && isEnabled(i))
            others[n++] = i;
    chosen = choose((unsigned)n + 1, 1);
    if (!chosen)
        return;
    x.preemptions++;
    if (x.isTold) {
        printf("    %s is preempted before it %s ", x.thread[x.self].comm, what);
        if (at)
            memoryTell(at);
        printf(":\n       ");
        tellPlace(pc);
        printf("\n    %s goes on\n", x.thread[others[chosen - 1]].comm);
    }
    switchTo(others[chosen - 1]);
}

void explorePoint(const char *what)
{
    if (x.self >= 0)
        exploreOffer(what, NULL, __builtin_return_address(0));
}

void exploreWait(int (*isReady)(void *), void *arg)
{
    Thread *t = &x.thread[x.self];

    t->isReady = isReady;
    t->arg = arg;
    if (!isEnabled(x.self))
        leave();
    t->isReady = NULL;
}

static void runThread(int self)
{
    x.thread[self].body();
    x.thread[self].isDone = 1;
    if (x.isTold)
        printf("    %s has ended\n", x.thread[self].comm);
    leave();
    abort();
}

/* --- runs ------------------------------------------------------------------------------------------------------- */

/* Runs the scene once, by the choices of the path, and by the first alternative where that ends. Nonzero: it failed. */
static int runOnce(const exploreScene *scene)
{
    memoryRestore();
    x.at = x.steps = 0;
    x.preemptions = 0;
    x.self = -1;
    scene->begin();
    if (setjmp(x.whole))
        return 1;
    for (int i = 0; i < x.count; i++) {
        Thread *t = &x.thread[i];

        t->isDone = 0;
        t->isReady = NULL;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = t->stack;
        t->context.uc_stack.ss_size = STACK_SIZE;
        t->context.uc_link = NULL;
        makecontext(&t->context, (void (*)(void))runThread, 1, i);
    }
    leave();
    scene->check();
    return 0;
}

/* The next path. 0: there is none. */
static int nextPath(void)
{
    while (x.length && x.path[x.length - 1].chosen + 1 == x.path[x.length - 1].count)
        x.length--;
    if (!x.length)
        return 0;
    x.path[x.length - 1].chosen++;
    return 1;
}

static double readSeconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void setUp(const exploreScene *scene)
{
    x.count = 0;
    memoryBegin();
    scene->setUp();
    memoryKeep();
}

static void tellFailure(const exploreScene *scene, unsigned long runs, double took)
{
    printf("%s: FAILED with %d preemption%s, in run %lu, after %.1f s: %s\n", scene->name, x.preemptions,
           x.preemptions == 1 ? "" : "s", runs, took, x.failure);
    x.isTold = 1;
    runOnce(scene);
    x.isTold = 0;
    printf("    %s\n", x.failure);
}

void exploreNote(const char *format, ...)
{
    va_list args;

    if (!x.isTold)
        return;
    printf("    %s: ", x.self >= 0 ? x.thread[x.self].comm : "at the end");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* All runs with up to "bound" preemptions. 0: none failed; 1: one did; -1: the time is over. */
static int exploreBound(const exploreScene *scene, int bound, double until, unsigned long *runs, double begun)
{
    x.bound = bound;
    do {
        x.length = 0;
        memoryLearn();
        do {
            ++*runs;
            if (runOnce(scene)) {
                tellFailure(scene, *runs, readSeconds() - begun);
                return 1;
            }
            if (!(*runs & 255) && readSeconds() > until)
                return -1;
        } while (nextPath());
    } while (memoryHasLearned());
    return 0;
}

/* Runs with preemptions at random steps. 0: none failed; 1: one did. */
static int exploreAtRandom(const exploreScene *scene, double seconds, unsigned long *runs, double begun)
{
    double until = readSeconds() + seconds;
    unsigned steps = 1;

    x.isRandom = 1;
    x.random = 1;
    x.bound = STOPS_MAX;
    do {
        ++*runs;
        x.length = 0;
        for (unsigned i = 0; i < STOPS_MAX; i++)
            x.stop[i] = 1 + drawNumber(steps);
        if (runOnce(scene)) {
            tellFailure(scene, *runs, readSeconds() - begun);
            x.isRandom = 0;
            return 1;
        }
        if (x.steps > steps)
            steps = x.steps;
        if (!(*runs & 1023))
            memoryHasLearned();
    } while (readSeconds() < until);
    x.isRandom = 0;
    return 0;
}

/* "atRandom": so many seconds are added, for runs at random. */
static int exploreOne(const exploreScene *scene, int most, double seconds, double atRandom)
{
    double begun = readSeconds();
    unsigned long runs = 0, drawn = 0;
    int bound, rc = 0;

    setUp(scene);
    for (bound = 0; bound <= most && !rc; bound++)
        rc = exploreBound(scene, bound, begun + seconds, &runs, begun);
    if (rc <= 0)
        printf("%-16s %d preemption%s %s: %lu runs, %.1f s, %u words are points, %u steps\n", scene->name, bound - 1,
               bound == 2 ? " " : "s", rc ? "in part" : "whole", runs, readSeconds() - begun, memoryLearn(), x.steps);
    if (rc <= 0 && atRandom > 0) {
        rc = exploreAtRandom(scene, atRandom, &drawn, readSeconds());
        if (!rc)
            printf("%-16s up to %d at random: %lu runs\n", scene->name, STOPS_MAX, drawn);
    }
    fflush(stdout);
    return rc > 0;
}

static int isWanted(const exploreScene *scene, char **names, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], scene->name))
            return 1;
    return !count;
}

static void usage(void)
{
    fprintf(stderr, "usage: explore [-l] [-p PREEMPTIONS] [-m] [-s SECONDS] [-r SECONDS] [SCENE...]\n"
            "  -l  lists the scenes\n  -p  so many preemptions at most\n  -m  as many as make soak tries\n"
            "  -s  seconds for each scene at most\n"
            "  -r  then so many seconds with preemptions at random\n");
    exit(2);
}

int main(int argc, char **argv)
{
    int preemptions = -1, isLong = 0, failed = 0, ran = 0, option;
    double seconds = 1e9, atRandom = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((option = getopt(argc, argv, "lp:ms:r:")) != -1)
        switch (option) {
        case 'l':
            for (unsigned i = 0; i < exploreSceneCount; i++)
                printf("%-16s %s\n", exploreScenes[i].name, exploreScenes[i].about);
            return 0;
        case 'p':
            preemptions = atoi(optarg);
            break;
        case 'm':
            isLong = 1;
            break;
        case 'r':
            atRandom = atof(optarg);
            break;
        case 's':
            seconds = atof(optarg);
            break;
        default:
            usage();
        }
    for (unsigned i = 0; i < exploreSceneCount; i++) {
        const exploreScene *scene = &exploreScenes[i];

        if (!isWanted(scene, argv + optind, argc - optind))
            continue;
        ran++;
        if (preemptions < 0)
            failed += exploreOne(scene, isLong ? scene->most : scene->preemptions, seconds, atRandom);
        else
            failed += exploreOne(scene, preemptions, seconds, atRandom);
    }
    if (!ran)
        usage();
    return failed != 0;
}
