/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * benchSwitch: two threads on one CPU that wake each other through pipes. They do not belong to an IOC. The program
 * reads lines "switch MS" from stdin, does this for MS milliseconds, and answers "switch NS COUNT": the mean time of
 * one wake-up with its context switch (ns), and their number.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void *echo(void *unused)
{
    char c;

    while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
        ;
    return unused;
}

int main(void)
{
    char line[64], c = 0;
    double ms;
    cpu_set_t one;
    pthread_t thread;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back) ||
        pthread_create(&thread, NULL, echo, NULL)) {
        perror("benchSwitch");
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        double begin = now(), t, n = 0;

        if (sscanf(line, "switch %lf", &ms) != 1)
            continue;
        do {
            if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
                return 1;
            n += 2;
            t = now();
        } while (t < begin + ms * 1e6);
        printf("switch %.1f %.0f\n", (t - begin) / n, n);
        fflush(stdout);
    }
    return 0;
}
