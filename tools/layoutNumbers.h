/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of Base that the monitor uses: the list from which tools/layout.sh makes bpf/contract/layout*.h. Each
 * line becomes a line of assembler, so nothing has to run. BASE is the release: 7000801 is 7.0.8.1, 3141200 is 3.14.12.
 * Members have Base's names.
 *
 *   LAYOUT  an offset or number that may differ between releases; a member of ebpfMonBaseRelease (ioc/baseLayout.h), in
 *           its order
 *   ALL     an offset that all releases share; a member of a struct in ioc/baseLayout.h
 *   NUMBER  another number that all share
 *   EVENTS  as LAYOUT, a member of ebpfMonEventLayout (ebpfMonModules/subscriptions/eventLists.h), in its order
 *   QUEUES  the same of ebpfMonQueueLayout (ebpfMonModules/queues/queueIoc.h)
 *   SAME    a number that a module has by hand: in another release it is code that must learn to choose
 */
#define LINE(text, value) __asm__ volatile("\n=" text ", %c0)" : : "i"((long)(value)))
#define LAYOUT(group, name, value) LINE("LAYOUT(" #group ", " #name, value)
#define ALL(group, name, type, member) LINE("ALL(" #group ", " #name, __builtin_offsetof(type, member))
#define NUMBER(name, value) LINE("NUMBER(" #name, value)
#define EVENTS(group, name, type, member) LINE("EVENTS(" #group ", " #name, __builtin_offsetof(type, member))
#define QUEUES(name, value) LINE("QUEUES(" #name, value)
#define SAME(where, type, member, number) \
    _Static_assert(__builtin_offsetof(type, member) == (number), \
                   where " believes that " #type "." #member " is at " #number)
#define OFFSET(group, name, type, member) LAYOUT(group, name, __builtin_offsetof(type, member))

#ifdef __cplusplus /* classes; their members are private */

#include "epicsRingPointer.h"
#include "epicsMutex.cpp"

void layoutOfClasses()
{
    OFFSET(ring, nextPush, epicsRingPointer<int>, nextPush);
    QUEUES(ringPush, __builtin_offsetof(epicsRingPointer<int>, nextPush));
    QUEUES(ringPop, __builtin_offsetof(epicsRingPointer<int>, nextPop));
    QUEUES(ringSize, __builtin_offsetof(epicsRingPointer<int>, size));
#if BASE >= 3160200
    QUEUES(ringHigh, __builtin_offsetof(epicsRingPointer<int>, highWaterMark));
#else
    QUEUES(ringHigh, 0);
#endif
    QUEUES(ringBuffer, __builtin_offsetof(epicsRingPointer<int>, buffer));
    OFFSET(mutex, pFileName, epicsMutexParm, pFileName);
    OFFSET(mutex, lineno, epicsMutexParm, lineno);
#if BASE >= 7000900 /* the mutex of the operating system itself, before a pointer to it */
    OFFSET(mutex, osd, epicsMutexParm, osd);
    LAYOUT(mutex, id, 0);
#else
    LAYOUT(mutex, osd, 0);
    OFFSET(mutex, id, epicsMutexParm, id);
#endif
}

#elif defined EVENT /* dbEvent.c and dbLock.c have macros in common */

#include "dbEvent.c"
#include "osiSock.h"
#include "server.h"

void membersOfEvents(void)
{
#if BASE >= 3150000
    SAME("subscriptions/eventLists.c", struct evSubscrip, chan, 16);
#else
    SAME("subscriptions/eventLists.c", struct evSubscrip, paddr, 16);
#endif
    SAME("subscriptions/eventLists.c", struct evSubscrip, user_sub, 24);
    SAME("subscriptions/eventLists.c", struct evSubscrip, ev_que, 40);
    SAME("subscriptions/eventLists.c", struct evSubscrip, enabled, 75);
    EVENTS(subscription, user_arg, struct evSubscrip, user_arg);
    EVENTS(subscription, ev_que, struct evSubscrip, ev_que);
    EVENTS(subscription, npend, struct evSubscrip, npend);
    EVENTS(subscription, nreplace, struct evSubscrip, nreplace);
    EVENTS(subscription, select, struct evSubscrip, select);
    EVENTS(subscription, enabled, struct evSubscrip, enabled);
#if BASE >= 3150000
    EVENTS(subscription, useValque, struct evSubscrip, useValque);
#else
    EVENTS(subscription, useValque, struct evSubscrip, valque);
#endif
    EVENTS(queue, evUser, struct event_que, evUser);
    EVENTS(queue, getix, struct event_que, getix);
    EVENTS(user, extralabor_arg, struct event_user, extralabor_arg);
    EVENTS(user, flowCtrlMode, struct event_user, flowCtrlMode);
    EVENTS(ext, pciu, struct event_ext, pciu);
    EVENTS(ext, pdbev, struct event_ext, pdbev);
    EVENTS(client, sendStk, struct client, send.stk);
    EVENTS(client, evuser, struct client, evuser);
}

#elif defined NOTIFY

#include "dbNotify.c"
#if BASE >= 3150000
SAME("waits/iocWaits.c", processNotify, chan, __builtin_offsetof(processNotify, pnotifyPvt) + 24);
SAME("waits/iocWaits.c", processNotify, chan, __builtin_offsetof(processNotify, requestType) + 8);
#else
#define notifyPvt putNotifyPvt
#define processNotifyRecord putNotifyRecord
SAME("waits/iocWaits.c", putNotify, pputNotifyPvt, __builtin_offsetof(putNotify, usrPvt) + 16);
#endif
SAME("waits/iocWaits.c", notifyPvt, magic, 16);
SAME("waits/iocWaits.c", notifyPvt, state, 24);
SAME("waits/iocWaits.c", notifyPvt, callback.user, 48);
SAME("waits/iocWaits.c", notifyPvt, waitList, 64);
SAME("waits/iocWaits.c", processNotifyRecord, restartList, 24);
SAME("waits/iocWaits.c", processNotifyRecord, precord, 48);

#elif defined QUEUE

#include "callback.c"
#include "epicsRingBytes.c"
#include "errlog.c"
#include "dbCa.h"
/* cadef.h and db_access.h need headers that are generated */
typedef void *chid, *evid;
#define MAX_UNITS_SIZE 8
#include "dbCaPvt.h"

void membersOfQueues(void)
{
#if BASE >= 3150002
    QUEUES(setSize, sizeof(cbQueueSet));
    QUEUES(setQueue, __builtin_offsetof(cbQueueSet, queue));
#else
    QUEUES(setSize, sizeof(callbackQ[0]));
    QUEUES(setQueue, 0);
#endif
#if BASE >= 3160200
    QUEUES(setOverflows, __builtin_offsetof(cbQueueSet, queueOverflows));
#else
    QUEUES(setOverflows, 0);
#endif
    QUEUES(callbackUser, __builtin_offsetof(CALLBACK, user));
    QUEUES(callbackSize, sizeof(CALLBACK));
    QUEUES(bytesPut, __builtin_offsetof(ringPvt, nextPut));
    QUEUES(bytesGet, __builtin_offsetof(ringPvt, nextGet));
    QUEUES(bytesSize, __builtin_offsetof(ringPvt, size));
#if BASE >= 3160200
    QUEUES(bytesHigh, __builtin_offsetof(ringPvt, highWaterMark));
#else
    QUEUES(bytesHigh, 0);
#endif
    QUEUES(bytesBuffer, __builtin_offsetof(ringPvt, buffer));
#if BASE >= 7000700
    QUEUES(logSize, sizeof(pvt));
    QUEUES(logRoom, __builtin_offsetof(__typeof__(pvt), bufSize));
    QUEUES(logLost, __builtin_offsetof(__typeof__(pvt), nLost));
    QUEUES(logLog, __builtin_offsetof(__typeof__(pvt), log));
    QUEUES(logBufs, __builtin_offsetof(__typeof__(pvt), bufs));
#else /* a ring of messages of different sizes */
    QUEUES(logSize, sizeof(pvtData));
    QUEUES(logRoom, __builtin_offsetof(__typeof__(pvtData), buffersize));
    QUEUES(logLost, __builtin_offsetof(__typeof__(pvtData), missedMessages));
    QUEUES(logLog, 0);
    QUEUES(logBufs, 0);
#endif
    QUEUES(linkPlink, __builtin_offsetof(caLink, plink));
    QUEUES(linkPvname, __builtin_offsetof(caLink, pvname));
    QUEUES(linkIsConnected, __builtin_offsetof(caLink, isConnected));
    QUEUES(linkGotFirst, __builtin_offsetof(caLink, gotFirstConnection));
}

#elif defined SCAN /* dbScan.c and server.h have an enum in common */

#include "dbScan.c"

void membersOfScans(void)
{
    ALL(ScanList, lock, scan_list, lock);
    ALL(ScanList, list, scan_list, list);
    ALL(ScanElement, node, scan_element, node);
    ALL(ScanElement, pscan_list, scan_element, pscan_list);
    ALL(ScanElement, precord, scan_element, precord);
#if BASE >= 3160000 /* before, a ring of pointers to records */
    QUEUES(onceEntry, sizeof(onceEntry));
#else
    QUEUES(onceEntry, 0);
#endif
}

#else

#include "dbLock.c"
#include "asLib.h"
#include "callback.h"
#include "dbBase.h"
#include "dbNotify.h"
#include "dbStaticLib.h"
#include "link.h"
#include "osiSock.h"
#include "server.h"
#include "special.h"
#if BASE >= 3150000
#include "dbChannel.h"
#endif

void layoutOfLinks(void)
{
    LAYOUT(dbf, menu, DBF_MENU);
    LAYOUT(dbf, inlink, DBF_INLINK);
    LAYOUT(dbf, fwdlink, DBF_FWDLINK);
    LAYOUT(dbf, noaccess, DBF_NOACCESS);
    LAYOUT(link, size, sizeof(struct link));
#if BASE >= 3160000 /* before, only a pv_link has the address of its record */
    OFFSET(link, precord, struct link, precord);
#else
    OFFSET(link, precord, struct link, value.pv_link.precord);
#endif
    OFFSET(link, type, struct link, type);
    OFFSET(link, constantStr, struct link, value.constantStr);
    OFFSET(link, pvname, struct link, value.pv_link.pvname);
    OFFSET(link, pvt, struct link, value.pv_link.pvt);
    OFFSET(link, pvlMask, struct link, value.pv_link.pvlMask);
}

void layoutOfServer(void)
{
#if BASE >= 3150000
    OFFSET(notify, chan, processNotify, chan);
    OFFSET(notify, usrPvt, processNotify, usrPvt);
    OFFSET(channel, dbch, struct channel_in_use, dbch);
#else /* there are no channels, and a DBADDR stands in their place */
    OFFSET(notify, chan, putNotify, paddr);
    OFFSET(notify, usrPvt, putNotify, usrPvt);
    OFFSET(channel, dbch, struct channel_in_use, addr);
#endif
    OFFSET(channel, client, struct channel_in_use, client);
    OFFSET(channel, eventq, struct channel_in_use, eventq);
    OFFSET(channel, sid, struct channel_in_use, sid);
    OFFSET(channel, time_at_creation, struct channel_in_use, time_at_creation);
    OFFSET(channel, asClientPVT, struct channel_in_use, asClientPVT);
    OFFSET(asgClient, access, ASGCLIENT, access);
    OFFSET(client, recvBuf, struct client, recv.buf);
    OFFSET(client, recvStk, struct client, recv.stk);
    OFFSET(client, recvCnt, struct client, recv.cnt);
    OFFSET(client, addr, struct client, addr);
    OFFSET(client, pUserName, struct client, pUserName);
    OFFSET(client, pHostName, struct client, pHostName);
    OFFSET(client, chanList, struct client, chanList);
    OFFSET(client, chanPendingUpdateARList, struct client, chanPendingUpdateARList);
    LAYOUT(has, channels, BASE >= 3150000);
    LAYOUT(has, threadNames, BASE >= 3150000); /* osdThread.c gives each thread's name to the system */
    LAYOUT(has, lockMany, BASE >= 3160000);    /* dbLock.c: dbScanLockMany */
    LAYOUT(has, onceLink, BASE >= 3160000);    /* dbScan.c: the third argument of scanOnceCallback */
}

void membersOfAll(void)
{
    ALL(Node, prev, ELLNODE, previous);
    ALL(List, count, ELLLIST, count);
    ALL(RecordType, recList, dbRecordType, recList);
    ALL(RecordType, name, dbRecordType, name);
    ALL(RecordType, no_fields, dbRecordType, no_fields);
    ALL(RecordType, papFldDes, dbRecordType, papFldDes);
    ALL(RecordType, rec_size, dbRecordType, rec_size);
    ALL(RecordNode, precord, dbRecordNode, precord);
    ALL(RecordNode, recordname, dbRecordNode, recordname);
    ALL(RecordNode, infoList, dbRecordNode, infoList);
    ALL(RecordNode, flags, dbRecordNode, flags);
    ALL(FldDes, name, dbFldDes, name);
    ALL(FldDes, special, dbFldDes, special);
    ALL(FldDes, field_type, dbFldDes, field_type);
    ALL(FldDes, initial, dbFldDes, initial);
    ALL(FldDes, ftPvt, dbFldDes, ftPvt);
    ALL(FldDes, size, dbFldDes, size);
    ALL(FldDes, offset, dbFldDes, offset);
    ALL(Menu, nChoice, dbMenu, nChoice);
    ALL(Menu, papChoiceName, dbMenu, papChoiceName);
    ALL(Menu, papChoiceValue, dbMenu, papChoiceValue);
    ALL(DeviceMenu, nChoice, dbDeviceMenu, nChoice);
    ALL(DeviceMenu, papChoice, dbDeviceMenu, papChoice);
    ALL(DbAddr, precord, dbAddr, precord);
    ALL(DbAddr, pfield, dbAddr, pfield);
    ALL(DbAddr, pfldDes, dbAddr, pfldDes);
    ALL(DbAddr, no_elements, dbAddr, no_elements);
    ALL(DbAddr, field_type, dbAddr, field_type);
    ALL(DbAddr, special, dbAddr, special);
    ALL(LockRecord, plockSet, lockRecord, plockSet);
    ALL(LockRecord, precord, lockRecord, precord);
    ALL(LockSet, records, lockSet, lockRecordList);
    ALL(LockSet, lock, lockSet, lock);
    ALL(LockSet, id, lockSet, id);
#if BASE >= 3150000
    ALL(DbChannel, name, dbChannel, name);
    ALL(DbChannel, addr, dbChannel, addr);
#endif
}

void numbersOfAll(void)
{
#if BASE >= 3150000
    NUMBER(LINK_PN, PN_LINK);
#endif
#if BASE >= 3160000
    NUMBER(LOCKER_MAXREFS, __builtin_offsetof(struct dbLocker, maxrefs));
    NUMBER(LOCKER_REFS, __builtin_offsetof(struct dbLocker, refs));
    NUMBER(LOCKREF_SIZE, sizeof(lockRecordRef));
#endif
    NUMBER(DBADDR_SIZE, sizeof(dbAddr));
    NUMBER(CALLBACK_PRIORITY, __builtin_offsetof(CALLBACK, priority));
    NUMBER(RECORDTYPELIST, __builtin_offsetof(dbBase, recordTypeList));
    NUMBER(ISALIAS, DBRN_FLAGS_ISALIAS);
    NUMBER(LINK_CONSTANT, CONSTANT);
    NUMBER(LINK_PV, PV_LINK);
    NUMBER(LINK_DB, DB_LINK);
    NUMBER(LINK_CA, CA_LINK);
    NUMBER(LINK_INST, INST_IO);
    NUMBER(LINK_LAST, VXI_IO);
    NUMBER(PVL_MSMODE, pvlOptMsMode);
    NUMBER(PVL_PP, pvlOptPP);
    NUMBER(PVL_CA, pvlOptCA);
    NUMBER(PVL_CP, pvlOptCP);
    NUMBER(PVL_CPP, pvlOptCPP);
    NUMBER(SPC_NOMOD, SPC_NOMOD);
    NUMBER(SPC_DBADDR, SPC_DBADDR);
    NUMBER(SPC_SCAN, SPC_SCAN);
    NUMBER(SPC_ATTRIBUTE, SPC_ATTRIBUTE);
    NUMBER(SPC_RESET, SPC_RESET);
    NUMBER(AS_WRITE, asWRITE);
    NUMBER(MAX_STRING, MAX_STRING_SIZE);
    NUMBER(CA_WRITE, CA_PROTO_WRITE);
    NUMBER(CA_WRITE_NOTIFY, CA_PROTO_WRITE_NOTIFY);
}

#endif
