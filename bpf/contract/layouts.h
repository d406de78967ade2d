/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How members of structs lie in releases of EPICS Base. Made by tools/layout.sh. */
/* The numbers behind the release are:
 * dbf.menu, dbf.inlink, dbf.fwdlink, dbf.noaccess, link.size, link.precord, link.type, link.constantStr,
 * link.pvname, link.pvt, link.pvlMask, notify.chan, notify.usrPvt, channel.dbch, channel.client, channel.eventq,
 * channel.sid, channel.time_at_creation, channel.asClientPVT, asgClient.access, client.recvBuf, client.recvStk,
 * client.recvCnt, client.addr, client.pUserName, client.pHostName, client.chanList, client.chanPendingUpdateARList,
 * has.channels, has.threadNames, has.lockMany, has.onceLink, ring.nextPush, mutex.pFileName, mutex.lineno,
 * mutex.osd, mutex.id */
LAYOUT("7.0.9 to 7.0.10.1-DEV", 12,14,16,17,80,0,8,32,48,56,72,48,80,72,40,16,60,64,80,60,40,48,56,168,208,216,96,120,1,1,1,1,8,16,24,32,0)
LAYOUT("3.16.1 to 7.0.8.1", 12,14,16,17,80,0,8,32,48,56,72,48,80,72,40,16,60,64,80,60,40,48,56,168,208,216,96,120,1,1,1,1,8,24,32,0,16)
LAYOUT("3.16.0.1", 10,12,14,15,80,0,8,32,48,56,72,48,80,72,40,16,60,64,80,60,40,48,56,168,208,216,96,120,1,1,1,1,8,24,32,0,16)
LAYOUT("3.15.0.2 to 3.15.9", 10,12,14,15,56,8,40,0,0,16,32,48,80,72,40,16,60,64,80,60,40,48,56,168,208,216,96,120,1,1,0,0,8,24,32,0,16)
LAYOUT("3.14.12 to 3.14.12.8", 10,12,14,15,56,8,40,0,0,16,32,32,64,72,40,16,60,64,112,60,40,48,56,168,208,216,96,120,0,0,0,0,0,24,32,0,16)
