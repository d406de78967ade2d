/* SPDX-License-Identifier: BSD-3-Clause */
/* The puts of the published values, the newest first, and the times of groups. See published.h. */
#include <string.h>

#include "model/published.h"

/* s; what is published after something else cannot be older than that by more. A trace waits 10 s for an asynchronous
 * record (trace/traces.c); puts wait for less. */
#define LATE_SECONDS 15.0

/* Nonzero: "a" is earlier than "b", and the clock was not set back in between. */
static int isEarlier(const epicsTimeStamp *a, const epicsTimeStamp *b)
{
    return epicsTimeLessThan(a, b) && epicsTimeDiffInSeconds(b, a) < LATE_SECONDS;
}

static const epicsTimeStamp *getPlacedTime(const ebpfMonPutValues *values, unsigned i)
{
    return &values->of[values->place[i].kind].put[values->place[i].index].time;
}

/* Takes the place of a new put: a free one, or that of the oldest put of its kind, which leaves both lists. */
static unsigned takeIndex(ebpfMonPutValues *values, ebpfMonPutKind kind)
{
    ebpfMonPutList *list = &values->of[kind];
    unsigned index, at = values->places;

    if (list->kept < EBPFMON_PUTS_MAX)
        return list->kept++;
    index = list->order[EBPFMON_PUTS_MAX - 1];
    while (at && (values->place[at - 1].kind != kind || values->place[at - 1].index != index))
        at--;
    if (at) {
        values->places--;
        memmove(&values->place[at - 1], &values->place[at], (values->places + 1 - at) * sizeof(values->place[0]));
    }
    return index;
}

/* A put is published when everything about it is known. On a busy host this may be after a later put. So it gets its
 * place by its time, in the list of its kind … */
static void insertIndex(ebpfMonPutList *list, unsigned index)
{
    unsigned at = 0;

    while (at + 1 < list->kept && isEarlier(&list->put[index].time, &list->put[list->order[at]].time))
        at++;
    memmove(&list->order[at + 1], &list->order[at], list->kept - 1 - at);
    list->order[at] = (uint8_t)index;
}

/* … and in the list of all puts. */
static void insertPlace(ebpfMonPutValues *values, ebpfMonPutPlace place)
{
    unsigned known = values->places < EBPFMON_PUTS_MAX ? values->places : EBPFMON_PUTS_MAX - 1, at = 0;
    const epicsTimeStamp *time = &values->of[place.kind].put[place.index].time;

    while (at < known && isEarlier(time, getPlacedTime(values, at)))
        at++;
    memmove(&values->place[at + 1], &values->place[at], (known - at) * sizeof(place));
    values->place[at] = place;
    values->places = known + 1;
    values->placed++;
}

void ebpfMonPublishedKeepPut(ebpfMonPublished *published, const ebpfMonPut *put)
{
    ebpfMonPutValues *values = &published->puts;
    ebpfMonPutKind kind = ebpfMonPutIsAutomatic(put) ? ebpfMonPutAutomatic : ebpfMonPutByClient;
    ebpfMonPutList *list = &values->of[kind];
    unsigned index = takeIndex(values, kind);

    list->put[index] = *put;
    list->put[index].serial = values->placed + 1;
    insertIndex(list, index);
    insertPlace(values, (ebpfMonPutPlace){ (uint8_t)kind, (uint8_t)index });
}

void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time)
{
    if (!isEarlier(&time, &published->time[group]))
        published->time[group] = time;
}

const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i)
{
    const ebpfMonPutValues *values = &published->puts;

    if (i >= values->places)
        return NULL;
    return &values->of[values->place[i].kind].put[values->place[i].index];
}

const ebpfMonPut *ebpfMonPublishedGetPutOf(const ebpfMonPublished *published, ebpfMonPutKind kind, unsigned i)
{
    const ebpfMonPutList *list = &published->puts.of[kind];

    return i < list->kept ? &list->put[list->order[i]] : NULL;
}
