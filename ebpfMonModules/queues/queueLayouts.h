/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How queues lie in releases of EPICS Base. Made by tools/layout.sh. */
/* The numbers behind the release are:
 * onceEntry, setSize, setQueue, setOverflows, callbackUser, callbackSize, bytesPut, bytesGet, bytesSize, bytesHigh,
 * bytesBuffer, logSize, logRoom, logLost, logLog, logBufs, linkPlink, linkPvname, linkIsConnected, linkGotFirst,
 * ringPush, ringPop, ringSize, ringHigh, ringBuffer */
QUEUES("7.0.8 to 7.0.10.1-DEV", 24,48,8,20,16,32,8,12,16,20,24,176,8,120,128,144,32,40,114,115,8,12,16,20,24)
QUEUES("7.0.7", 24,40,8,20,16,32,8,12,16,20,24,176,8,120,128,144,32,40,114,115,8,12,16,20,24)
QUEUES("3.16.2 to 7.0.6.1", 24,40,8,20,16,32,8,12,16,20,24,168,124,152,0,0,32,40,114,115,8,12,16,20,24)
QUEUES("3.16.0.1 to 3.16.1", 24,32,8,0,16,32,8,12,16,0,20,168,124,152,0,0,32,40,114,115,8,12,16,0,24)
QUEUES("3.15.0.2 to 3.15.9", 0,32,8,0,16,32,8,12,16,0,20,168,124,152,0,0,24,32,82,83,8,12,16,0,24)
QUEUES("3.14.12 to 3.14.12.8", 0,8,0,0,16,32,0,4,8,0,16,160,124,144,0,0,24,32,82,83,0,4,8,0,16)
