/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "ebpfMonBase.h"
#include "ioc/baseLayout.h"
#include "ioc/baseRelease.h"

static const ebpfMonBaseRelease own = {
    .dbfGap = 0,
    .linkOwner = offsetof(struct layoutPvLink, precord), .linkType = offsetof(struct layoutPvLink, type),
    .linkValue = offsetof(struct layoutPvLink, backNext), .linkPvname = offsetof(struct layoutPvLink, pvname),
    .linkPvt = offsetof(struct layoutPvLink, pvt), .linkPvlMask = offsetof(struct layoutPvLink, pvlMask),
    .clRecvBuf = 40, .clRecvStk = 48, .clRecvCnt = 56, .clAddr = 168, .clUser = 208, .clHost = 216,
    .clChans = 96, .clPending = 120,
    .ciuClient = 40, .ciuDbch = 72, .ciuAs = 80,
    .asAccess = 60,
    .ppnChan = 48, .ppnUsr = 80,
    .chanAddr = EBPFMON_DBCHANNEL_ADDR, .ringHead = 8, .hasThreadNames = 1, .hasLockMany = 1, .onceHasLink = 1,
};

const ebpfMonBaseRelease *ebpfMonBaseReleaseOwn(void)
{
    return &own;
}

/* DBF numbers of dbFldTypes.h in EPICS 7. */
enum { DBF_MENU7 = 12, DBF_INLINK7 = EBPFMON_DBF_INLINK, DBF_FWDLINK7 = EBPFMON_DBF_FWDLINK, DBF_NOACCESS7 = 17 };
#define GAP_MAX 2

static void setOldLinks(ebpfMonBaseRelease *r)
{
    r->linkOwner = offsetof(struct layoutOldLink, precord);
    r->linkType = offsetof(struct layoutOldLink, type);
    r->linkValue = offsetof(struct layoutOldLink, pvname);
    r->linkPvname = offsetof(struct layoutOldLink, pvname);
    r->linkPvt = offsetof(struct layoutOldLink, pvt);
    r->linkPvlMask = offsetof(struct layoutOldLink, pvlMask);
}

int ebpfMonBaseReleaseFind(const ebpfMonBaseEvidence *seen, ebpfMonBaseRelease *r, char *why, size_t size)
{
    unsigned gap = DBF_MENU7 - seen->scan;

    *r = own;
    if ((gap != 0 && gap != GAP_MAX) || seen->flnk + gap != DBF_FWDLINK7 || seen->sdis + gap != DBF_INLINK7 ||
        seen->time + gap != DBF_NOACCESS7) {
        snprintf(why, size,
                 "an unknown release of EPICS Base: DBF_MENU is %u, DBF_FWDLINK %u, DBF_NOACCESS %u. Not watched",
                 seen->scan, seen->flnk, seen->time);
        return -1;
    }
    r->dbfGap = (uint16_t)gap;
    if (seen->linkSize == LAYOUT_LINK_SIZE)
        return 0;
    if (gap == 0 || seen->linkSize != LAYOUT_OLDLINK_SIZE) {
        /* before 3.14.12, whose DBADDR has one member more, a link has 48 bytes */
        snprintf(why, size,
                 "an unknown release of EPICS Base: its links have %u bytes. Known are 3.14.12 and later. Not "
                 "watched",
                 seen->linkSize);
        return -1;
    }
    setOldLinks(r);
    r->hasLockMany = r->onceHasLink = 0;
    return 0;
}

void ebpfMonBaseReleaseSetPutNotify(ebpfMonBaseRelease *r)
{
    r->ciuAs = 112; /* behind the DBADDR */
    r->ppnChan = 32;
    r->ppnUsr = 64;
    r->chanAddr = 0;
    r->ringHead = 0;
    r->hasThreadNames = 0;
}
