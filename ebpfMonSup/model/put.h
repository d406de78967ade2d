/* SPDX-License-Identifier: BSD-3-Clause */
/* One put, as people want to read it: who, by which way, why, and its result. Functions: any thread. */
#ifndef EBPFMON_PUT_H
#define EBPFMON_PUT_H

#include <epicsTime.h>
#include <stddef.h>
#include <stdint.h>
#include "common/hash.h"
#include "common/text.h"

/* --- chains ---
 *
 * The identity of one chain of a watched IOC. Any thread.
 */

typedef struct {
    uint32_t iocId; /* never used again for another IOC; 0: no chain */
    uint32_t tid;
    uint64_t begin; /* monotonic ns at which the thread requested the lock set */
} ebpfMonChainId;

static inline int ebpfMonChainIdIsSame(const ebpfMonChainId *a, const ebpfMonChainId *b)
{
    return a->begin == b->begin && a->tid == b->tid && a->iocId == b->iocId;
}

/* A hash for tables of up to 2^24 places. The number of places must be a power of two. */
static inline uint32_t ebpfMonChainIdHash(const ebpfMonChainId *chain)
{
    return (uint32_t)(ebpfMonHashInteger(chain->begin + chain->tid) >> 40);
}

/* --- puts --- */

#define EBPFMON_NAME_SIZE 61   /* PVNAME_STRINGSZ: 60 characters */
#define EBPFMON_TEXT_SIZE 512  /* bytes of a value as text; a text that was cut ends with "..." */
#define EBPFMON_WHO_SIZE  192
#define EBPFMON_PEER_SIZE 56   /* "[IPv6 address]:port" */
#define EBPFMON_ORIGIN_SIZE 400
#define EBPFMON_LINE_SIZE 1400 /* a put in one line */
#define EBPFMON_BRIEF_SIZE 40  /* a put in a line of an alarm table: the size of a STRING */

typedef enum {
    ebpfMonPutOk,
    ebpfMonPutFailed,   /* "status" is the EPICS status, "message" the server's own words, if it sent some */
    ebpfMonPutDenied,   /* refused by access security, or a field that nobody may write */
    ebpfMonPutUnknown,  /* its result was not seen: this IOC has no return probe */
    ebpfMonPutSent,     /* seen only in packets: a plain CA write has no reply, and no error came */
    ebpfMonPutLost,     /* seen in packets, but the watched IOC never made it */
    ebpfMonPutUnwritten,/* the watched IOC answered that it is made (pvAccess), and wrote no record */
    ebpfMonPutPending   /* only in logs: no put of its own, but one that was made and still waits for records, as
                         * "message" says */
} ebpfMonPutResult;

/* The way by which the put came; see "origin" in the glossary. */
typedef enum {
    ebpfMonByCa,
    ebpfMonByPva,
    ebpfMonByLink,      /* a database link; "link" has its record and field */
    ebpfMonByCaLink,    /* a CA link of a watched IOC; "link" has its record and field */
    ebpfMonByShell,     /* a command at the IOC's shell, such as dbpf */
    ebpfMonByInit,      /* before iocInit had ended: autosave and other start-up code */
    ebpfMonByThread,    /* another thread of the IOC, in "thread": a driver, a sequencer program; or code that calls
                         * dbPutField in a chain, as a routine of an aSub record does */
    ebpfMonByCount
} ebpfMonThrough;

/* "CA", "PVA", "link", "CA link", "shell", "start-up", "thread" */
const char *ebpfMonThroughName(ebpfMonThrough through);

#define EBPFMON_SEEN_INSIDE 1 /* seen in the IOC, by a probe */
#define EBPFMON_SEEN_WIRE   2 /* seen in packets */

/* A run of puts that is one row. */
typedef struct {
    uint64_t count;       /* of its puts; 0: the row stands for one put */
    uint64_t at;          /* when it began, in monotonic ns … */
    epicsTimeStamp time;
    char     first[EBPFMON_BRIEF_SIZE]; /* … and with which value */
} ebpfMonPutRun;

typedef struct ebpfMonPut {
    epicsTimeStamp time;
    uint64_t at;          /* the same in monotonic ns: the order of puts, because the clock may be set back */
    char     ioc[EBPFMON_NAME_SIZE]; /* name of the IOC; of a server that is no watched IOC: its address:port */
    char     pv[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD; only RECORD for VAL. If the channel is not known: "sid 12" */
    char     channel[128];/* the name as the client wrote it, if it differs from pv (alias, modifiers, filters) */
    char     group[128];  /* the group of pvAccess of which it is a member, and to which the client wrote */
    char     val[EBPFMON_TEXT_SIZE];   /* the value that was sent */
    char     old[EBPFMON_TEXT_SIZE];   /* the value before; empty if it is not known: see hasOld */
    char     after[EBPFMON_TEXT_SIZE]; /* the value that the field has afterwards, if it differs from val; else empty */
    uint64_t took;        /* ns until a call (RPC) of pvAccess was answered; then "after" is what it returned. 0: it is
                           * no call, or not known */
    int      hasOld;
    int      isNumber;    /* nonzero: val is one number, and "number" has it */
    int      oldIsNumber;
    double   number, oldNumber;
    int      isText;      /* nonzero: val is a text, or an array of texts, none of which is a number though it may look
                           * like one */
    int      oldIsText;
    int      isConverted; /* nonzero: val is a text that the IOC converts to the number "converted": "1e3" becomes 1
                           * in a longout. To "wrapped" if its release reads octal and hexadecimal numbers: "0x10" */
    double   converted;
    int      isWrapped;   /* nonzero: the type of the field has no room for "number", and the IOC stores "wrapped"; or
                           * see isConverted */
    double   wrapped;
    long     count;       /* elements that were sent */
    long     oldCount;    /* elements before; -1: not known */
    uint64_t hash;        /* FNV-1a of all elements that were sent; 0: not calculated */
    char     user[40];    /* as the client claims; the real user, if a local client claims none; "x509/NAME": the name
                           * in its certificate, which the server has proved (a claim like that: "ca/x509/NAME") */
    char     authority[64]; /* of such a user: the name of the root certificate; empty: not known */
    char     host[64];    /* as the client claims; else its address */
    char     peer[EBPFMON_PEER_SIZE];   /* real address:port of the client; empty: there is no client */
    char     server[EBPFMON_PEER_SIZE]; /* address:port of the server; empty: not known */
    char     published[EBPFMON_PEER_SIZE]; /* … to which the client connected, if this host translates it to "server" */
    char     realUser[40];/* real user of a client on this host, from the kernel */
    uint32_t peerPid;     /* process of a client on this host; else 0 */
    uint32_t peerUid;
    int      isUnsure;    /* nonzero: one of several clients of the same thread made the put. What is said of the client
                           * is said of one of them */
    char     gateway[96]; /* gateways that made the put for the client, "pvagw[1234], pvagw[1235]": he is connected to
                           * the first. Empty: none, as far as is known */
    unsigned gatewayClients; /* so many clients may be the one; 0: none is known. If it is not 1, all that is said of
                           * the client is of the gateway itself (ebpfMonPutIsAnonymous) */
    epicsTimeStamp gatewayTime; /* when the client's put came to the first gateway … */
    char     gatewayServer[EBPFMON_PEER_SIZE]; /* … and its address:port */
    char     command[64]; /* command of a client on this host */
    char     container[64]; /* container of a client on this host: short id or name; empty: none */
    char     thread[16];  /* thread of the IOC that wrote; empty: not known */
    char     link[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD of the link that wrote */
    char     linkIoc[EBPFMON_NAME_SIZE];  /* ebpfMonByCaLink: IOC of the link */
    ebpfMonChainId linkChain;             /* ebpfMonByCaLink: chain in which the link wrote */
    int      isLinkUnsure;                /* … nonzero: or another chain, which wrote at nearly the same time */
    ebpfMonChainId chain;     /* chain that began with this put; iocId 0: none, or not known */
    ebpfMonChainId source;    /* chain in which the IOC made this put; if another chain handed that one over, or left
                               * the record processing that it completes: the other one. iocId 0: none, or not known */
    uint8_t  messageTrace[16]; /* id of a trace that begins with its message: both hosts compute the same
                           * (traceSpans.h). All 0: no message, or not known */
    uint8_t  trace[16];   /* id of its trace, in which the put that caused this one is, too (putTraces.h). All 0: not
                           * known */
    char     root[EBPFMON_NAME_SIZE];     /* root of its chain; empty: there is none, or it is not known */
    char     cause[200];  /* what started that chain: "scan .1 second", "I/O Intr", "put by U@H" … */
    ebpfMonThrough through;
    char     who[EBPFMON_WHO_SIZE];       /* user@host, and what we know for certain about it; made from the members
                                           * above */
    char     origin[EBPFMON_ORIGIN_SIZE]; /* origin and cause as text; made from the members above */
    ebpfMonPutResult result;
    long     status;
    char     message[64];
    int      isPartly;    /* nonzero: a group of pvAccess of which the server refused a member, and made others: these
                           * are puts of their own */
    unsigned seen;        /* EBPFMON_SEEN_… */
    int      byProgram;   /* nonzero: no person: an IOC of this host (a sequence, a CA link), or a program that a rule
                           * calls automatic */
    int      unexpected;  /* nonzero: the rules do not expect it; "rule" tells why */
    char     rule[96];
    ebpfMonPutRun run;    /* of a row that stands for a run (published.c) */
    uint64_t serial;      /* number in its published list, from 1 on: a put does not change any more once it has one */
} ebpfMonPut;

/* Writes "2026-11-21 07:28:03.123456 PV old -> new by who (origin)", and the result if it is not ok. Returns the
 * length. A text that is too long ends with "...". */
size_t ebpfMonPutLine(const ebpfMonPut *put, char *buf, size_t size);

/* Writes the result in a few words: "became 10", "denied", "fails: …", "lost"; "" if it was made as it was sent, or if
 * that is not known because no reply was asked for. Returns the length. */
size_t ebpfMonPutOutcome(const ebpfMonPut *put, char *buf, size_t size);

/* Writes "PV = value by user: rule", as much as there is room for. Of a name that is too long it keeps the end, of a
 * value the begin. */
void ebpfMonPutBrief(const ebpfMonPut *put, char buf[EBPFMON_BRIEF_SIZE]);

/* Cleans all texts of the put (ebpfMonTextClean), whoever wrote them. */
void ebpfMonPutClean(ebpfMonPut *put);

#define EBPFMON_NOT_KNOWN "not known"

/* The client's address of put->peer, without its port. Empty: there is no client, or its address is not known. */
void ebpfMonPutGetAddress(const ebpfMonPut *put, char *buf, size_t size);

/* Length of the record's name, with which the name of a channel or PV begins. It ends at the first "." as in Base
 * (dbFindRecordPart, dbStaticLib.c): modifiers and filters come behind the ".", and names may have "{" and "[". */
size_t ebpfMonPutGetRecordLength(const char *name);

/* Nonzero: the server has proved the user by a certificate. */
static inline int ebpfMonPutIsCertified(const ebpfMonPut *put)
{
    return strncmp(put->user, EBPFMON_BY_CERTIFICATE, sizeof(EBPFMON_BY_CERTIFICATE) - 1) == 0;
}

/* Nonzero: code of the IOC made it. A client's put may have caused it, but it has no message of its own. */
static inline int ebpfMonPutIsInner(const ebpfMonPut *put)
{
    return put->through == ebpfMonByLink || put->through == ebpfMonByThread;
}


/* Nonzero: it came through a gateway, and who is behind it is not known. */
static inline int ebpfMonPutIsAnonymous(const ebpfMonPut *put)
{
    return put->gateway[0] && put->gatewayClients != 1;
}

/* Nonzero: an automatic put: an IOC made it by itself (link, sequence, driver, callback, start-up). Zero: a client or
 * somebody at a shell made it. */
int ebpfMonPutIsAutomatic(const ebpfMonPut *put);

/* Nonzero: as far as we know it wrote nothing. */
int ebpfMonPutHasFailed(const ebpfMonPut *put);

/* "ok", "failed", "denied", "unknown", "sent", "lost", "unwritten", "pending" */
const char *ebpfMonPutResultName(ebpfMonPutResult result);

#endif
