/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/deviceSilence.h"

#define USERS_MOST 4096

typedef struct {
    struct ebpfMonDeviceKey user;
    uint64_t ended, left; /* at the first look */
    uint64_t before;      /* "ended" at the look before: "left" has all requests that made these records end */
    uint64_t most;        /* "left" may be ahead of "before"; the number does not go back then */
} First;

struct ebpfMonDeviceSilence {
    First *first;
    size_t count, room;
};

ebpfMonDeviceSilence *ebpfMonDeviceSilenceNew(void)
{
    return calloc(1, sizeof(ebpfMonDeviceSilence));
}

void ebpfMonDeviceSilenceFree(ebpfMonDeviceSilence *s)
{
    if (s)
        free(s->first);
    free(s);
}

static First *findFirst(ebpfMonDeviceSilence *s, const struct ebpfMonDeviceKey *user, uint64_t ended, uint64_t left)
{
    for (size_t i = 0; i < s->count; i++)
        if (memcmp(&s->first[i].user, user, sizeof(*user)) == 0)
            return &s->first[i];
    if (s->count == USERS_MOST || ebpfMonArrayGrow(&s->first, &s->room, s->count + 1, 32, sizeof(*s->first)))
        return NULL;
    s->first[s->count] = (First){ *user, ended, left, ended, 0 };
    return &s->first[s->count++];
}

uint64_t ebpfMonDeviceSilenceCount(ebpfMonDeviceSilence *s, const struct ebpfMonDeviceKey *user, uint64_t ended,
                                   uint64_t left)
{
    First *f = findFirst(s, user, ended, left);
    uint64_t more;

    if (!f)
        return UINT64_MAX;
    if (ended < f->ended) /* the IOC was looked at anew: the record's count began at 0 again */
        *f = (First){ *user, ended, left, ended, f->most };
    more = f->before - f->ended > left - f->left ? f->before - f->ended - (left - f->left) : 0;
    f->before = ended;
    if (more > f->most)
        f->most = more;
    return f->most;
}

void ebpfMonDeviceSilenceForget(ebpfMonDeviceSilence *s, uint32_t tgid)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->count; i++)
        if (s->first[i].user.tgid != tgid)
            s->first[kept++] = s->first[i];
    s->count = kept;
}
