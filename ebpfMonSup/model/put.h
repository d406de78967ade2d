/* SPDX-License-Identifier: BSD-3-Clause */
/* One write to a field, as people want to read it: who, through what, why, and what came of it. */
#ifndef EBPFMON_PUT_H
#define EBPFMON_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <epicsTime.h>
#include "common/text.h"
#include "model/chainId.h"

#define EBPFMON_NAME_SIZE 61   /* PVNAME_STRINGSZ: 60 characters */
#define EBPFMON_TEXT_SIZE 512  /* a value as text; what is cut ends in "..." */
#define EBPFMON_WHO_SIZE  192
#define EBPFMON_ORIGIN_SIZE 400
#define EBPFMON_LINE_SIZE 1400 /* a put in one line */
#define EBPFMON_BRIEF_SIZE 40  /* a put in one line of an alarm table: what a STRING holds */

typedef enum {
    ebpfMonPutOk,
    ebpfMonPutFailed,   /* "status" has the EPICS status, "message" the server's own words if it sent some */
    ebpfMonPutDenied,   /* access security, or a field that nobody may write */
    ebpfMonPutUnknown,  /* seen, but its result was not (no return probe on this IOC) */
    ebpfMonPutSent,     /* seen on the wire alone: a plain CA write has no reply, and no error came back */
    ebpfMonPutLost      /* seen on the wire; the IOC that is watched never made it */
} ebpfMonPutResult;

/* Through what the write came. */
typedef enum {
    ebpfMonByCa,
    ebpfMonByPva,
    ebpfMonByLink,      /* a database link of the record in "link" */
    ebpfMonByCaLink,    /* a CA link of the record in "link" of another (or the same) watched IOC */
    ebpfMonByShell,     /* dbpf and the like at the IOC's shell */
    ebpfMonByInit,      /* before iocInit was done: autosave and other start-up code */
    ebpfMonByThread,    /* another thread of the IOC: driver, sequencer program, in "thread" */
    ebpfMonByCount
} ebpfMonThrough;

/* "CA", "PVA", "link", "CA link", "shell", "start-up", "thread" */
const char *ebpfMonThroughName(ebpfMonThrough through);

#define EBPFMON_SEEN_INSIDE 1 /* by a probe in the IOC */
#define EBPFMON_SEEN_WIRE   2 /* in packets */

typedef struct {
    epicsTimeStamp time;
    char     ioc[EBPFMON_NAME_SIZE]; /* display name; for a server that is no watched IOC its address:port */
    char     pv[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD; plain RECORD for VAL. What is not known yet of a channel:
                                           "sid 12" */
    char     channel[128];/* as the client wrote it, where that is another text than pv (alias, modifiers, filters) */
    char     val[EBPFMON_TEXT_SIZE];   /* what was sent */
    char     old[EBPFMON_TEXT_SIZE];   /* before; empty when it is not known: see hasOld */
    char     after[EBPFMON_TEXT_SIZE]; /* what the record made of it, where that is another than val; else empty */
    int      hasOld;
    int      isNumber;    /* val is a single number, and "number" has it */
    int      oldIsNumber;
    double   number, oldNumber;
    int      isConverted; /* val is a text that the IOC takes for the number "converted": "0x10" is 0 for a longout */
    double   converted;
    long     count;       /* elements sent */
    long     oldCount;    /* elements there were, -1: not known */
    uint64_t hash;        /* FNV-1a of all elements sent, 0: not made */
    char     user[40];    /* claimed by the client; for a local client without a claim its real one */
    char     host[64];    /* claimed by the client, else its address */
    char     peer[24];    /* verified address:port of the client; empty: no client */
    char     server[24];  /* address:port that it came to; empty: not known */
    char     realUser[40];/* of a client on this host: what the kernel says */
    uint32_t peerPid;     /* local client: its process, else 0 */
    uint32_t peerUid;
    char     command[64]; /* … and command */
    char     container[64]; /* … and container, short id or name; empty: none */
    char     thread[16];  /* that wrote, in the IOC; empty: not known */
    char     link[EBPFMON_NAME_SIZE + 8]; /* record.field of the link that wrote */
    char     linkIoc[EBPFMON_NAME_SIZE];  /* ebpfMonByCaLink: its IOC */
    ebpfMonChainId linkChain;             /* … in this chain */
    char     root[EBPFMON_NAME_SIZE];     /* record that the chain began with; empty: none, or not known */
    char     cause[200];  /* what started that: "scan .1 second", "I/O Intr", "put by U@H" … */
    ebpfMonThrough through;
    char     who[EBPFMON_WHO_SIZE];       /* user@host, and what we verified of it; made of the above */
    char     origin[EBPFMON_ORIGIN_SIZE]; /* through what and why; made of the above */
    ebpfMonPutResult result;
    long     status;
    char     message[64];
    unsigned seen;        /* EBPFMON_SEEN_… */
    int      byIoc;       /* the client is an IOC of this host: a sequence or a CA link, no person */
    int      unexpected;  /* the rules did not allow it: "rule" says why */
    char     rule[96];
} ebpfMonPut;

/* "2026-11-21 07:28:03.123456 PV old -> new by who (origin)" and the result where it is not ok.
 * Returns the length; too long ends in "...". */
size_t ebpfMonPutLine(const ebpfMonPut *put, char *buf, size_t size);

/* "PV = value by user: rule", as much as there is room for: of a name that is too long the end, of a value the
 * beginning. */
void ebpfMonPutBrief(const ebpfMonPut *put, char buf[EBPFMON_BRIEF_SIZE]);

/* Makes all texts of the put clean (common/text.h), whoever wrote them. */
void ebpfMonPutClean(ebpfMonPut *put);

/* Nonzero: an IOC made the put by itself (link, sequence, driver, callback, start-up). Zero: a client or somebody at a
 * shell did. */
int ebpfMonPutIsAutomatic(const ebpfMonPut *put);

/* "ok", "failed", "denied", "unknown", "sent", "lost" */
const char *ebpfMonPutResultName(ebpfMonPutResult result);

#endif
