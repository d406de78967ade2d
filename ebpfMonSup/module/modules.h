/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modules of this process (ebpfMonModule.h), and what the core tells them. One list per process, because Base calls
 * registrars without a context. It is written before iocInit, and only read afterwards.
 */
#ifndef EBPFMON_MODULES_H
#define EBPFMON_MODULES_H

#include "ebpfMonModule.h"
#include "model/put.h"

/* Start: of each module; one that cannot start is left out of all that follows. Stop: 0; or -1: a thread of a module
 * still runs. */
void ebpfMonModulesStart(const ebpfMonModuleCore *core);
int  ebpfMonModulesStop(double seconds);

/* As the functions of ebpfMonModule. */
void ebpfMonModulesTellPut(const ebpfMonPut *put);
void ebpfMonModulesTellTrace(const ebpfMonModuleTrace *trace);
void ebpfMonModulesTellPacket(const ebpfMonModulePacket *packet);
void ebpfMonModulesTellMessage(const struct ebpfMonWireEvent *message);
void ebpfMonModulesTellFinished(const ebpfMonPut *put);
void ebpfMonModulesTellServers(int haveChanged);
void ebpfMonModulesTellEvent(const epicsTimeStamp *time, const char *text);
void ebpfMonModulesTellIocs(void);
void ebpfMonModulesTellSecond(void);
void ebpfMonModulesGiveMetrics(ebpfMonModuleTakeMetric take, void *to);
void ebpfMonModulesResetLost(void);
void ebpfMonModulesReport(int level);

/* The name of a channel of pvAccess, as the first module that knows it says. 0, or -1: none does. */
int ebpfMonModulesFindChannel(const struct ebpfMonPeer *peer, uint32_t sid, char *name, size_t size);

/* The first module that takes spans; NULL: none does. */
const struct ebpfMonSpanSink *ebpfMonModulesGetSpans(void);

/* The next line that a module has added for IOC_EVENTS. 0, or -1: there is none. Publishing thread. */
int ebpfMonModulesTakeEvent(char text[EBPFMON_MODULE_EVENT + 1]);

/* Nonzero: a module hears traces. */
int ebpfMonModulesWantTraces(void);

#define EBPFMON_LIGHT_TEXT 256

/* The first PV with this light (ebpfMonPv.light) that is on, of the next module that has one: "text" gets its cause.
 * "from": 0, or what the call before returned; 0: there is none. The caller holds the lock of the values. */
unsigned ebpfMonModulesFindLight(const struct ebpfMonPublished *p, int light, unsigned from,
                                 char text[EBPFMON_LIGHT_TEXT]);

/* A PV of a module by its name; "ofRecord" nonzero: one of a watched record. NULL: none has it. */
const ebpfMonPv *ebpfMonModulesFindPv(const char *name, int ofRecord);

#endif
