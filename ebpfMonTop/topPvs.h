/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PVs of one monitor. Each is connected once; libca connects it again when the monitor was restarted. One thread:
 * libca calls our functions only inside topPvsPoll (ca_disable_preemptive_callback), so there are no locks.
 *
 * A scalar or a text has a subscription of its value. An array has a subscription that only tells that it changed. Then
 * it is read together with the other columns of its table (topTable.h), because columns that come one by one may be of
 * two moments.
 */
#ifndef TOPPVS_H
#define TOPPVS_H

#include <stddef.h>

#include <epicsTime.h>
#include <epicsTypes.h>

/* chid and evid of cadef.h. No file can include both cadef.h and ncurses.h, because both define chtype. */
struct oldChannelNotify;
struct oldSubscription;

#define TOP_PVS_MAX 160

typedef enum {
    topNumber,   /* read as DOUBLE */
    topText,     /* read as STRING: a state, or a text of up to 39 bytes */
    topLongText, /* read as CHAR: one or more lines */
    topNumbers,  /* an array of DOUBLE */
    topTexts     /* an array of STRING */
} topKind;

typedef struct topPv {
    struct topPvs *pvs;
    const char *name;     /* behind the prefix */
    topKind  kind;
    struct oldChannelNotify *channel;
    struct oldSubscription *event; /* NULL before the first connection */
    int      isConnected;
    int      isKnown;     /* a value has come */
    int      severity;    /* severity of the value: NO_ALARM … INVALID_ALARM */
    epicsTimeStamp time;  /* time stamp of the value */
    unsigned changes;     /* number of events, connections and disconnections */
    double   number;      /* topNumber */
    char    *text;        /* topText, topLongText; never NULL */
} topPv;

typedef struct topPvs {
    char     prefix[61];
    topPv    pv[TOP_PVS_MAX];
    unsigned count;
    unsigned changes;     /* of all PVs together */
    int      isPaused;    /* new values are dropped */
    int      file;        /* readable when topPvsPoll must be called; -1: not known yet */
} topPvs;

/* "pvs" is all zero, and must not be moved. 0, or -1 after a message on stderr. */
int topPvsOpen(topPvs *pvs, const char *prefix);
void topPvsClose(topPvs *pvs);

/* Returns the PV of this name; the first call begins to connect it. "name" must stay. NULL after a message on
 * stderr: there is no room, or the name cannot be a PV. */
topPv *topPvsGet(topPvs *pvs, const char *name, topKind kind);

/* Lets libca call our functions for values and connections; does not wait. */
void topPvsPoll(topPvs *pvs);

/* Nonzero: values do not change from now on. 0: all values are read again, and change. */
void topPvsPause(topPvs *pvs, int pause);

/* Writes a text into a PV of kind topLongText; does not wait for the result. 0, or -1: it is not connected, or may
 * not be written. */
int topPvPutText(topPv *pv, const char *text);

/* Nonzero: there is a value, and it is valid. */
int topPvIsValid(const topPv *pv);

/* The number of PVs, without arrays, that have no value yet. */
unsigned topPvsCountMissing(const topPvs *pvs);

#endif
