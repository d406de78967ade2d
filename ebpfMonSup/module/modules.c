/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <epicsStdio.h>
#include <errlog.h>

#include "common/worker.h"
#include "common/text.h"
#include "model/published.h"
#include "module/modules.h"

/* One list per process: the header tells why. */
static ebpfMonModule *module[EBPFMON_MODULES_MAX];
static unsigned count;

#define LINES 16
#define STATE_TROUBLE 2 /* of ebpfMonService.template */

/* Lines for IOC_EVENTS that the publishing thread has not taken yet. */
static struct {
    ebpfMonLazyMutex lock;
    unsigned count, taken;
    char     line[LINES][EBPFMON_MODULE_EVENT + 1];
} events = { .lock = EBPFMON_LAZY_MUTEX };

unsigned ebpfMonModulesFindLight(const struct ebpfMonPublished *p, int light, unsigned from,
                                 char text[EBPFMON_LIGHT_TEXT])
{
    for (unsigned i = from; i < count; i++)
        for (unsigned k = 0; k < module[i]->pvCount; k++) {
            const ebpfMonPv *pv = &module[i]->pvs[k];
            const char *row = pv->light == light ? pv->row(p, 0) : NULL;
            unsigned value = 0; /* an int that is not negative is read as well */

            if (row && (pv->severity || pv->cell == ebpfMonCellUnsigned || pv->cell == ebpfMonCellInt))
                memcpy(&value, row + (pv->severity ? pv->severity - 1 : pv->offset), sizeof(value));
            if (value == 0 || (!pv->severity && pv->cell == ebpfMonCellInt && value != STATE_TROUBLE))
                continue;
            snprintf(text, EBPFMON_LIGHT_TEXT, "%s", pv->cause ? row + pv->cause - 1 : pv->name);
            return i + 1;
        }
    return 0;
}

const ebpfMonPv *ebpfMonModulesFindPv(const char *name, int ofRecord)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < module[i]->pvCount; k++)
            if (!module[i]->pvs[k].ofRecord == !ofRecord && strcmp(module[i]->pvs[k].name, name) == 0)
                return &module[i]->pvs[k];
    return NULL;
}

int ebpfMonModuleAdd(ebpfMonModule *m)
{
    if (count == EBPFMON_MODULES_MAX) {
        errlogSevPrintf(errlogMajor, "ebpfMon: the module %s is left out: there are %d modules. Link fewer of them\n",
                        m->name, EBPFMON_MODULES_MAX);
        return -1;
    }
    for (unsigned k = 0; k < m->pvCount; k++)
        if (ebpfMonModulesFindPv(m->pvs[k].name, m->pvs[k].ofRecord)) {
            errlogSevPrintf(errlogMajor, "ebpfMon: the module %s is left out: another one has the PV %s. Give it "
                            "another name\n", m->name, m->pvs[k].name);
            return -1;
        }
    m->group = ebpfMonGroupModules + (int)count;
    for (unsigned k = 0; k < m->pvCount; k++)
        m->pvs[k].group = m->group;
    module[count++] = m;
    return 0;
}

void ebpfMonModuleLock(void)
{
    ebpfMonPublishedLock();
}

void ebpfMonModuleUnlock(void)
{
    ebpfMonPublishedUnlock();
}

const char *ebpfMonModuleGetWatched(unsigned index)
{
    const ebpfMonWatchValues *watched = &ebpfMonPublishedLock()->watched;
    const char *name = index < watched->count ? watched->row[index].record : NULL;

    ebpfMonPublishedUnlock();
    return name;
}

void ebpfMonModuleShow(const ebpfMonModule *m)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    epicsTimeGetCurrent(&published->time[m->group]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify((ebpfMonGroup)m->group);
}

void ebpfMonModuleShowValues(const ebpfMonModule *m, void *shown, const void *values, size_t size)
{
    if (memcmp(shown, values, size) == 0)
        return;
    ebpfMonModuleLock();
    memcpy(shown, values, size);
    ebpfMonModuleUnlock();
    ebpfMonModuleShow(m);
}

void ebpfMonModuleAddEvent(const char *text)
{
    ebpfMonLazyMutexLock(&events.lock);
    if (events.count < LINES)
        ebpfMonTextCopy(events.line[events.count++], sizeof(events.line[0]), text);
    ebpfMonLazyMutexUnlock(&events.lock);
}

int ebpfMonModulesTakeEvent(char text[EBPFMON_MODULE_EVENT + 1])
{
    int isTaken;

    ebpfMonLazyMutexLock(&events.lock);
    isTaken = events.taken < events.count;
    if (isTaken)
        memcpy(text, events.line[events.taken++], sizeof(events.line[0]));
    else
        events.taken = events.count = 0;
    ebpfMonLazyMutexUnlock(&events.lock);
    return isTaken ? 0 : -1;
}

void ebpfMonModulesStart(const ebpfMonModuleCore *core)
{
    for (unsigned i = 0; i < count; i++) {
        module[i]->isStarted = !module[i]->start || module[i]->start(module[i]->arg, core) == 0;
        if (!module[i]->isStarted)
            errlogSevPrintf(errlogMajor, "ebpfMon: the module %s cannot start, and the monitor runs without it: see "
                            "the message before, then restart the monitor\n", module[i]->name);
    }
}

int ebpfMonModulesStop(double seconds)
{
    int left = 0;

    for (unsigned i = count; i-- > 0;) {
        if (module[i]->isStarted && module[i]->stop && module[i]->stop(module[i]->arg, seconds))
            left = -1;
        module[i]->isStarted = 0; /* commands may still come */
    }
    return left;
}

void ebpfMonModulesTellPut(const ebpfMonPut *p)
{
    const ebpfMonChainId *source = p->through == ebpfMonByCaLink ? &p->linkChain : &p->source;
    const ebpfMonModulePut put = {
        .time = p->time, .at = p->at, .ioc = p->ioc, .pv = p->pv, .value = p->val,
        .oldValue = p->hasOld ? p->old : NULL, .user = p->user, .host = p->host, .peer = p->peer, .who = p->who,
        .origin = p->origin, .result = ebpfMonPutResultName(p->result), .reason = p->unexpected ? p->rule : NULL,
        .isAutomatic = ebpfMonPutIsAutomatic(p), .hasFailed = ebpfMonPutHasFailed(p),
        .chain = { .begin = p->chain.iocId ? p->chain.begin : 0, .thread = p->chain.tid },
        .source = { .begin = source->iocId ? source->begin : 0, .thread = source->tid }, .context = p,
    };

    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->put)
            module[i]->put(module[i]->arg, &put);
}

int ebpfMonModulesWantTraces(void)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->trace)
            return 1;
    return 0;
}

void ebpfMonModulesTellTrace(const ebpfMonModuleTrace *trace)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->trace)
            module[i]->trace(module[i]->arg, trace);
}

void ebpfMonModulesTellPacket(const ebpfMonModulePacket *packet)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->packet)
            module[i]->packet(module[i]->arg, packet);
}

void ebpfMonModulesTellMessage(const struct ebpfMonWireEvent *message)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->message)
            module[i]->message(module[i]->arg, message);
}

void ebpfMonModulesTellFinished(const ebpfMonPut *put)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->finished)
            module[i]->finished(module[i]->arg, put);
}

void ebpfMonModulesTellServers(int haveChanged)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->servers)
            module[i]->servers(module[i]->arg, haveChanged);
}

int ebpfMonModulesFindChannel(const struct ebpfMonPeer *peer, uint32_t sid, char *name, size_t size)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->findChannel &&
            module[i]->findChannel(module[i]->arg, peer, sid, name, size) == 0)
            return 0;
    return -1;
}

void ebpfMonModulesTellEvent(const epicsTimeStamp *time, const char *text)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->event)
            module[i]->event(module[i]->arg, time, text);
}

void ebpfMonModulesTellIocs(void)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->iocs)
            module[i]->iocs(module[i]->arg);
}

void ebpfMonModulesTellSecond(void)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->isStarted && module[i]->second)
            module[i]->second(module[i]->arg);
}

void ebpfMonModulesGiveMetrics(ebpfMonModuleTakeMetric take, void *to)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->metrics)
            module[i]->metrics(module[i]->arg, take, to);
}

void ebpfMonModulesResetLost(void)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->resetLost)
            module[i]->resetLost(module[i]->arg);
}

const struct ebpfMonSpanSink *ebpfMonModulesGetSpans(void)
{
    for (unsigned i = 0; i < count; i++)
        if (module[i]->spans)
            return module[i]->spans;
    return NULL;
}

void ebpfMonModulesReport(int level)
{
    for (unsigned i = 0; i < count; i++) {
        printf("Module %s: %s\n", module[i]->name, module[i]->isStarted ? "runs" : "does not run");
        if (module[i]->isStarted && module[i]->report)
            module[i]->report(module[i]->arg, level);
    }
}
