/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * putTime RECORD SHOWN COUNT: puts to RECORD, one put after the other with random pauses, and waits each time for the
 * next event of SHOWN, which may be RECORD itself. Prints for each put the µs from ca_put to the event.
 *
 * A client in Python adds up to a millisecond of its own, as much as is to be measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cadef.h>
#include <epicsEvent.h>

#define SHORTEST 20000 /* µs; no put waits for the one before it */
#define LONGEST  80000
#define TIMEOUT  10.0

typedef struct {
    epicsEventId   came;
    struct timespec at; /* when the newest event came; "came" guards it */
} shownEvent;

static void check(const char *what, int status)
{
    if (status == ECA_NORMAL)
        return;
    fprintf(stderr, "putTime: %s: %s\n", what, ca_message(status));
    exit(1);
}

static void onEvent(struct event_handler_args args)
{
    shownEvent *event = args.usr;

    clock_gettime(CLOCK_MONOTONIC, &event->at);
    epicsEventMustTrigger(event->came);
}

static void await(shownEvent *event, const char *name)
{
    if (epicsEventWaitWithTimeout(event->came, TIMEOUT) == epicsEventOK)
        return;
    fprintf(stderr, "putTime: no event of %s\n", name);
    exit(1);
}

/* Returns µs. */
static double measureOne(chid record, double value, shownEvent *event, const char *name)
{
    struct timespec begin;

    nanosleep(&(struct timespec){ .tv_nsec = 1000L * (SHORTEST + rand() % (LONGEST - SHORTEST)) }, NULL);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    check("put", ca_put(DBR_DOUBLE, record, &value));
    check("flush", ca_flush_io());
    await(event, name);
    return (double)(event->at.tv_sec - begin.tv_sec) * 1e6 + (double)(event->at.tv_nsec - begin.tv_nsec) / 1e3;
}

int main(int argc, char *argv[])
{
    shownEvent event;
    chid record, shown;
    int count;

    if (argc != 4) {
        fprintf(stderr, "usage: putTime RECORD SHOWN COUNT\n");
        return 2;
    }
    count = atoi(argv[3]);
    event.came = epicsEventMustCreate(epicsEventEmpty);
    check("context", ca_context_create(ca_enable_preemptive_callback));
    check(argv[1], ca_create_channel(argv[1], NULL, NULL, 0, &record));
    check(argv[2], ca_create_channel(argv[2], NULL, NULL, 0, &shown));
    check("connection", ca_pend_io(TIMEOUT));
    check(argv[2], ca_create_subscription(DBR_STRING, 1, shown, DBE_VALUE, onEvent, &event, NULL));
    check("flush", ca_flush_io());
    await(&event, argv[2]); /* the value at the begin */
    for (int i = 1; i <= count; i++)
        printf("%.0f\n", measureOne(record, i, &event, argv[2]));
    ca_context_destroy();
    return 0;
}
