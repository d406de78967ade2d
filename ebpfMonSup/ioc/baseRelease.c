/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ioc/baseRelease.h"

#define RELEASES(range)              .releases = range,
#define LAYOUT(group, member, number) .group.member = number,

static const ebpfMonBaseRelease layout[] = {
    {
#include "layout7.0.9.h"
    }, {
#include "layout3.16.1.h"
    }, {
#include "layout3.16.0.1.h"
    }, {
#include "layout3.15.0.2.h"
    }, {
#include "layout3.14.12.h"
    },
};

#define LAYOUTS (sizeof(layout) / sizeof(layout[0]))

const ebpfMonBaseRelease *ebpfMonBaseReleaseGet(unsigned index)
{
    return index < LAYOUTS ? &layout[index] : NULL;
}

const ebpfMonBaseRelease *ebpfMonBaseReleaseFind(const ebpfMonBaseEvidence *seen, char *why, size_t size)
{
    unsigned most = 0;

    for (size_t i = 0; i < LAYOUTS; i++) {
        const ebpfMonBaseRelease *l = &layout[i];
        const struct { const char *name; unsigned is, expected; } check[] = {
            { "DBF_MENU", seen->scan, l->dbf.menu },
            { "DBF_FWDLINK", seen->flnk, l->dbf.fwdlink },
            { "DBF_INLINK", seen->sdis, l->dbf.inlink },
            { "DBF_NOACCESS", seen->time, l->dbf.noaccess },
            { "sizeof(struct link)", seen->linkSize, l->link.size },
        };
        const unsigned checks = sizeof(check) / sizeof(check[0]);
        unsigned passed = 0;

        while (passed < checks && check[passed].is == check[passed].expected)
            passed++;
        if (passed == checks)
            return l;
        if (i == 0 || passed > most) { /* the layout that fits best names the member */
            most = passed;
            snprintf(why, size, "an unknown release of EPICS Base: %s is %u, in %s it is %u. Not watched",
                     check[passed].name, check[passed].is, l->releases, check[passed].expected);
        }
    }
    return NULL;
}

int ebpfMonBaseReleaseIsAlike(const ebpfMonBaseRelease *a, const ebpfMonBaseRelease *b)
{
    return memcmp(&a->dbf, &b->dbf, sizeof(a->dbf)) == 0 && memcmp(&a->link, &b->link, sizeof(a->link)) == 0;
}
