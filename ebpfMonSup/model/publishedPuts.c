/* SPDX-License-Identifier: BSD-3-Clause */
/* The puts of the published values, the newest first, and the times of groups. See published.h. */
#include "model/published.h"

#define LATE_SECONDS 10.0 /* s; a put that is published after another one cannot be older than that by more */

/* Nonzero: "a" is earlier than "b", and the clock was not set back in between. */
static int isEarlier(const epicsTimeStamp *a, const epicsTimeStamp *b)
{
    return epicsTimeLessThan(a, b) && epicsTimeDiffInSeconds(b, a) < LATE_SECONDS;
}

/* Exchanges two puts in a list. */
static void exchangePuts(ebpfMonPutValues *values, ebpfMonPutKind kind, unsigned at, unsigned before)
{
    ebpfMonPutList *list = &values->of[kind];
    ebpfMonPut put = list->put[at];
    unsigned known = values->placed < EBPFMON_PUTS_MAX ? (unsigned)values->placed : EBPFMON_PUTS_MAX;

    list->put[at] = list->put[before];
    list->put[before] = put;
    for (unsigned i = 1; i <= known; i++) {
        ebpfMonPutPlace *place = &values->place[(values->placed - i) % EBPFMON_PUTS_MAX];

        if (place->kind == kind && (place->index == at || place->index == before))
            place->index = (uint8_t)(place->index == at ? before : at);
    }
}

/* A put is published when everything about it is known. On a busy host this may be after a later put. Moves the last
 * put to its place in the list of its kind … */
static void sortLast(ebpfMonPutValues *values, ebpfMonPutKind kind)
{
    const ebpfMonPutList *list = &values->of[kind];
    unsigned at = list->newest;

    for (unsigned i = 1; i < list->kept; i++) {
        unsigned before = (at + EBPFMON_PUTS_MAX - 1) % EBPFMON_PUTS_MAX;

        if (!isEarlier(&list->put[at].time, &list->put[before].time))
            return;
        exchangePuts(values, kind, at, before);
        at = before;
    }
}

static const epicsTimeStamp *getPlacedTime(const ebpfMonPutValues *values, const ebpfMonPutPlace *place)
{
    return &values->of[place->kind].put[place->index].time;
}

/* … and in the list of all puts. */
static void sortLastPlace(ebpfMonPutValues *values)
{
    unsigned known = values->placed < EBPFMON_PUTS_MAX ? (unsigned)values->placed : EBPFMON_PUTS_MAX;

    for (unsigned i = 1; i < known; i++) {
        ebpfMonPutPlace *last = &values->place[(values->placed - i) % EBPFMON_PUTS_MAX];
        ebpfMonPutPlace *before = &values->place[(values->placed - i - 1) % EBPFMON_PUTS_MAX], place = *last;

        if (!isEarlier(getPlacedTime(values, last), getPlacedTime(values, before)))
            return;
        *last = *before;
        *before = place;
    }
}

void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put)
{
    ebpfMonPutValues *values = &published->puts;
    ebpfMonPutKind kind = ebpfMonPutIsAutomatic(put) ? ebpfMonPutAutomatic : ebpfMonPutByClient;
    ebpfMonPutList *list = &values->of[kind];

    list->newest = (list->newest + 1) % EBPFMON_PUTS_MAX;
    if (list->kept < EBPFMON_PUTS_MAX)
        list->kept++;
    list->put[list->newest] = *put;
    values->place[values->placed++ % EBPFMON_PUTS_MAX] = (ebpfMonPutPlace){ (uint8_t)kind, (uint8_t)list->newest };
    list->put[list->newest].serial = values->placed;
    sortLast(values, kind);
    sortLastPlace(values);
}

void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time)
{
    if (!isEarlier(&time, &published->time[group]))
        published->time[group] = time;
}

const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i)
{
    const ebpfMonPutValues *values = &published->puts;
    const ebpfMonPutPlace *place;

    if (i >= values->placed || i >= EBPFMON_PUTS_MAX)
        return NULL;
    place = &values->place[(values->placed - 1 - i) % EBPFMON_PUTS_MAX];
    return &values->of[place->kind].put[place->index];
}

const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i)
{
    const ebpfMonPutList *list = &published->puts.of[kind];

    if (i >= list->kept)
        return NULL;
    return &list->put[(list->newest + EBPFMON_PUTS_MAX - i) % EBPFMON_PUTS_MAX];
}
