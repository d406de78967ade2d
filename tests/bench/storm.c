/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storm [-r PUTS/S] [-f FIRST] PV COUNT|SECONDSs [notify] [PV...]: floods PVs with puts.
 *
 * The puts carry FIRST (1), FIRST + 1, … and go round the PVs, so that what was lost on the way can be told. Says
 * "ready", waits for a line or the end of its input, so that several can begin together, puts, and says "sent N
 * last VALUE seconds T" when the server has served all of them, T with that wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cadef.h>
#include <epicsAtomic.h>
#include <epicsEvent.h>

#define BATCH   64
#define WINDOW  1024 /* put-callbacks that wait for their answer */
#define TIMEOUT 30.0

static epicsEventId answered;
static size_t answers;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what, int status)
{
    fprintf(stderr, "storm: %s: %s\n", what, ca_message(status));
    exit(1);
}

static void answer(struct event_handler_args args)
{
    if (args.status != ECA_NORMAL)
        fprintf(stderr, "storm: put refused: %s\n", ca_message(args.status));
    epicsAtomicIncrSizeT(&answers);
    epicsEventMustTrigger(answered);
}

static void wait_answers(size_t number)
{
    while (epicsAtomicGetSizeT(&answers) < number)
        if (epicsEventWaitWithTimeout(answered, TIMEOUT) != epicsEventOK)
            fail("no answer", ECA_TIMEOUT);
}

/* What is asked for on the command line. */
typedef struct {
    double rate, seconds, first; /* puts a second, 0: as fast as possible; 0: by number; first value */
    unsigned long limit;         /* puts */
    int    notify, pvs;
    char **names;
} order;

static int readArguments(order *o, int argc, char *argv[])
{
    int option;
    char *end;

    *o = (order){ .first = 1 };
    while ((option = getopt(argc, argv, "+r:f:")) != -1) {
        if (option == 'r')
            o->rate = atof(optarg);
        else if (option == 'f')
            o->first = atof(optarg);
        else
            return -1;
    }
    if (argc - optind < 2) {
        fprintf(stderr, "usage: storm [-r PUTS/S] [-f FIRST] PV COUNT|SECONDSs [notify] [PV...]\n");
        return -1;
    }
    o->seconds = strtod(argv[optind + 1], &end);
    if (*end != 's') {
        o->limit = (unsigned long)o->seconds;
        o->seconds = 0;
    }
    argv[optind + 1] = argv[optind]; /* the PVs in one row */
    o->notify = argc - optind > 2 && strcmp(argv[optind + 2], "notify") == 0;
    if (o->notify)
        argv[optind + 2] = argv[optind];
    o->names = &argv[optind + 1 + o->notify];
    o->pvs = argc - optind - 1 - o->notify;
    return 0;
}

static chid *connectAll(const order *o)
{
    int status = ca_context_create(ca_enable_preemptive_callback);
    chid *channel;

    if (status != ECA_NORMAL)
        fail("no context", status);
    channel = calloc((size_t)o->pvs, sizeof(*channel));
    for (int i = 0; i < o->pvs; i++)
        if ((status = ca_create_channel(o->names[i], NULL, NULL, 0, &channel[i])) != ECA_NORMAL)
            fail(o->names[i], status);
    if ((status = ca_pend_io(TIMEOUT)) != ECA_NORMAL)
        fail("not connected", status);
    return channel;
}

/* Returns how many puts were sent. */
static unsigned long sendPuts(const order *o, const chid *channel, double begin)
{
    unsigned long sent = 0;
    double value = o->first;
    int status;

    while (o->seconds > 0 ? now() - begin < o->seconds : sent < o->limit) {
        unsigned long batch = o->limit && o->limit - sent < BATCH ? o->limit - sent : BATCH;

        if (o->rate > 0) {
            double due = begin + (double)sent / o->rate - now();

            batch = 1;
            if (due > 0)
                nanosleep(&(struct timespec){(time_t)due, (long)((due - (double)(time_t)due) * 1e9)}, NULL);
        }
        while (batch--) {
            chid id = channel[sent++ % (unsigned)o->pvs];

            status = o->notify ? ca_array_put_callback(DBR_DOUBLE, 1, id, &value, answer, NULL)
                               : ca_array_put(DBR_DOUBLE, 1, id, &value);
            if (status != ECA_NORMAL)
                fail("put", status);
            value += 1;
        }
        ca_flush_io();
        if (o->notify && sent > WINDOW)
            wait_answers(sent - WINDOW);
    }
    if (o->notify)
        wait_answers(sent);
    return sent;
}

int main(int argc, char *argv[])
{
    order o;
    double begin, read;
    unsigned long sent;
    chid *channel;
    int status;

    if (readArguments(&o, argc, argv))
        return 2;
    answered = epicsEventMustCreate(epicsEventEmpty);
    channel = connectAll(&o);
    printf("ready\n");
    fflush(stdout);
    getchar();

    begin = now();
    sent = sendPuts(&o, channel, begin);
    /* A server serves a circuit in its order: when a read has its answer, so had all puts before it. */
    status = ca_get(DBR_DOUBLE, channel[0], &read);
    if (status == ECA_NORMAL)
        status = ca_pend_io(TIMEOUT);
    if (status != ECA_NORMAL)
        fail("the last read", status);
    printf("sent %lu last %.0f seconds %.6f\n", sent, o.first + (double)sent - 1, now() - begin);
    ca_context_destroy();
    return 0;
}
