/* SPDX-License-Identifier: BSD-3-Clause */
/* The puts of the published values, the newest first, and the times of groups. See published.h. */
#include <string.h>

#include "model/published.h"

#define LATE_SECONDS 15.0 /* what sets the time of a group is not later than that */

/* Nonzero: "a" is earlier than "b", and the clock was not set back in between. */
static int isEarlier(const epicsTimeStamp *a, const epicsTimeStamp *b)
{
    return epicsTimeLessThan(a, b) && epicsTimeDiffInSeconds(b, a) < LATE_SECONDS;
}

static uint64_t getPlacedAt(const ebpfMonPutValues *values, unsigned i)
{
    return values->of[values->place[i].kind].put[values->place[i].index].at;
}

/* Returns a place for a new put: a free one, or that of the oldest put of this kind, which leaves both lists. */
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

/* A put is published when everything about it is known: seconds after a later put if the IOC answered it and did not
 * make it, an hour if the IOC stood still. So the list of its kind has it in the order of times … */
static void insertIndex(ebpfMonPutList *list, unsigned index)
{
    unsigned at = 0;

    while (at + 1 < list->kept && list->put[index].at < list->put[list->order[at]].at)
        at++;
    memmove(&list->order[at + 1], &list->order[at], list->kept - 1 - at);
    list->order[at] = (uint8_t)index;
}

/* … and in the list of all puts. */
static void insertPlace(ebpfMonPutValues *values, ebpfMonPutPlace place)
{
    unsigned known = values->places < EBPFMON_PUTS_MAX ? values->places : EBPFMON_PUTS_MAX - 1, at = 0;
    uint64_t made = values->of[place.kind].put[place.index].at;

    while (at < known && made < getPlacedAt(values, at))
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

void ebpfMonPublishedSetTime(ebpfMonPublished *published, ebpfMonGroup group, epicsTimeStamp time, uint64_t at)
{
    if (at < published->timeAt[group] || isEarlier(&time, &published->time[group]))
        return;
    published->time[group] = time;
    published->timeAt[group] = at;
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
