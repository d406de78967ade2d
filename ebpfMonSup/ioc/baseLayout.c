/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ioc/baseLayout.h"

#define LAYOUT(range, ...) { range, LAYOUT_NUMBERS(__VA_ARGS__) },
#define LAYOUT_NUMBERS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, \
                       A, B, C, D, E, F, G, H, I, J, K) \
    { a, b, c, d }, { e, f, g, h, i, j, k }, { l, m }, { n, o, p, q, r, s }, { t }, { u, v, w, x, y, z, A, B }, \
    { C, D, E, F }, { G }, { H, I, J, K }

static const ebpfMonBaseRelease layout[] = {
#include "layouts.h"
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
