/* SPDX-License-Identifier: BSD-3-Clause */
#include "watch/targetConf.h"

_Static_assert((int)EBPFMON_OFF == (int)ebpfMonLevelOff && (int)EBPFMON_PUTS == (int)ebpfMonLevelPuts &&
               (int)EBPFMON_COUNTS == (int)ebpfMonLevelCounts && (int)EBPFMON_CHAINS == (int)ebpfMonLevelChains &&
               (int)EBPFMON_TRACE == (int)ebpfMonLevelTrace, "the kernel part numbers the levels alike");

/* How Base lies in the memory of this IOC. */
static void fillLayout(struct ebpfMonTargetConf *conf, const ebpfMonTarget *t)
{
    const ebpfMonBaseRelease *o = t->cat->base;
    const ebpfMonCommon *c = &t->cat->common;

    *conf = (struct ebpfMonTargetConf){
        .asActive = t->image.asActive,
        .breakpoints = t->image.breakpoints,
        .time = c->time,
        .spvt = c->spvt,
        .pact = c->pact,
        .ppn = c->ppn,
        .lset = c->lset,
        .disp = c->disp,
        .sevr = c->sevr,
        .stat = c->stat,
        .phas = c->phas,
        .proc = c->proc,
        .tse = c->tse,
        .clAddr = o->client.addr,
        .clUser = o->client.pUserName,
        .clHost = o->client.pHostName,
        .clRecvBuf = o->client.recvBuf,
        .clRecvStk = o->client.recvStk,
        .clRecvCnt = o->client.recvCnt,
        .ciuClient = o->channel.client,
        .ciuDbch = o->channel.dbch,
        .ciuAs = o->channel.asClientPVT,
        .asAccess = o->asgClient.access,
        .ppnChan = o->notify.chan,
        .ppnUsr = o->notify.usrPvt,
        .dbfGap = (uint8_t)(EBPFMON_DBF_MENU - o->dbf.menu),
        .chanAddr = o->has.channels ? EBPFMON_DbChannel_addr : 0,
        .linkType = (uint8_t)o->link.type,
        .linkValue = (uint8_t)o->link.constantStr,
        .linkPvname = (uint8_t)o->link.pvname,
        .linkPvlMask = (uint8_t)o->link.pvlMask,
        .mutexOsd = o->has.channels ? o->mutex.osd : 0, /* in EPICS 3.14 the POSIX mutex is not the first member */
        .mutexId = o->has.channels ? o->mutex.id : 0,
        .ringHead = (uint8_t)o->ring.nextPush,
        .hasThreadNames = (uint8_t)o->has.threadNames,
        .onceHasLink = (uint8_t)o->has.onceLink,
        .endsOtherwise = t->follower.att.core->calls && t->follower.att.core->calls->endsOtherwise,
    };
}

void ebpfMonTargetConfFill(struct ebpfMonTargetConf *conf, const ebpfMonTarget *t, ebpfMonLevel level,
                           const ebpfMonFilter *filter)
{
    fillLayout(conf, t);
    conf->iocId = t->iocId;
    conf->level = (uint16_t)level;
    conf->sample = filter->sample;
    conf->slowNs = (uint64_t)(filter->slowUs * 1000);
    conf->parallel = (uint16_t)t->follower.timing.parallel;
    conf->queuesSince = t->follower.queuesSince;
    conf->seesPutLocks = (uint8_t)t->follower.seesPutLocks;
    conf->serving = t->follower.serving;
    conf->seesScanPuts = (uint8_t)t->follower.sweep.seesPuts;
    conf->putsTaken = t->follower.sweep.puts;
    conf->sweepsSince = t->follower.sweep.since;
    conf->sweeps = t->follower.sweep.number;
    conf->turn = t->follower.timing.number;
    conf->untimed = (uint32_t)t->follower.timing.untimed;
}
