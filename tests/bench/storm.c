/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storm [-r PUTS/S] [-f FIRST] PV COUNT|SECONDSs [notify] [PV...]: floods PVs with puts.
 *
 * The values are FIRST (default 1), FIRST + 1, …; the PVs take turns. So a test can tell which puts were lost.
 *
 * The program connects, prints "ready", and waits for a line on stdin or for its end, so that several of them can begin
 * at the same time. Then it puts. When the server has executed all puts, it prints "sent N last VALUE seconds T"; T
 * contains the wait for the server.
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
#define PACES   1000 /* a second: with -r, so often puts are sent */
#define WINDOW  1024 /* the highest number of put-callbacks without an answer */
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

/* The command line. */
typedef struct {
    double rate;         /* puts per second; 0: as fast as possible */
    double seconds;      /* how long to put; 0: "limit" counts */
    double first;        /* first value */
    unsigned long limit; /* number of puts */
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
    argv[optind + 1] = argv[optind]; /* so all PVs stand side by side */
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

/* Returns the number of puts sent. */
static unsigned long sendPuts(const order *o, const chid *channel, double begin)
{
    unsigned long sent = 0;
    double value = o->first;
    int status;

    while (o->seconds > 0 ? now() - begin < o->seconds : sent < o->limit) {
        unsigned long batch = o->limit && o->limit - sent < BATCH ? o->limit - sent : BATCH;

        if (o->rate > 0) {
            double due = begin + (double)sent / o->rate - now();

            if (batch > 1 + (unsigned long)(o->rate / PACES))
                batch = 1 + (unsigned long)(o->rate / PACES);
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
    /* The server executes the requests of a circuit in their order. So when the read is answered, all puts are done. */
    status = ca_get(DBR_DOUBLE, channel[0], &read);
    if (status == ECA_NORMAL)
        status = ca_pend_io(TIMEOUT);
    if (status != ECA_NORMAL)
        fail("the last read", status);
    printf("sent %lu last %.0f seconds %.6f\n", sent, o.first + (double)sent - 1, now() - begin);
    ca_context_destroy();
    return 0;
}
