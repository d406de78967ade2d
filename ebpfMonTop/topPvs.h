/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PVs of one monitor: connected once, and followed through all reconnections. One thread: libca calls back only
 * inside of topPvsPoll (ca_disable_preemptive_callback), so there are no locks.
 *
 * The value of a scalar or of a text comes by itself. An array only says that it changed, and is read together with
 * those of the same table (topTable.h): columns that came one by one could be of two moments.
 */
#ifndef TOPPVS_H
#define TOPPVS_H

#include <stddef.h>

#include <epicsTime.h>
#include <epicsTypes.h>

/* chid and evid of cadef.h, whose chtype is not that of ncurses: no file can include both. */
struct oldChannelNotify;
struct oldSubscription;

#define TOP_PVS_MAX 160

typedef enum {
    topNumber,   /* read as DOUBLE */
    topText,     /* read as STRING: a state, or what a STRING holds */
    topLongText, /* read as CHAR: one or more lines */
    topNumbers,  /* an array of DOUBLE */
    topTexts     /* an array of STRING */
} topKind;

typedef struct topPv {
    struct topPvs *pvs;
    const char *name;     /* behind the prefix */
    topKind  kind;
    struct oldChannelNotify *channel;
    struct oldSubscription *event; /* made with the first connection, NULL until then */
    int      isConnected;
    int      isKnown;     /* a value came */
    int      severity;    /* of that value: NO_ALARM … INVALID_ALARM */
    epicsTimeStamp time;
    unsigned changes;     /* events, connections and disconnections */
    double   number;      /* topNumber */
    char    *text;        /* topText, topLongText; never NULL */
} topPv;

typedef struct topPvs {
    char     prefix[61];
    topPv    pv[TOP_PVS_MAX];
    unsigned count;
    unsigned changes;     /* of all */
    int      isPaused;    /* values that come are dropped */
    int      file;        /* can be read when topPvsPoll has something to do; -1: not yet */
} topPvs;

/* 0, or -1 with a message on stderr. "pvs" is all zero, and stays where it is. */
int topPvsOpen(topPvs *pvs, const char *prefix);
void topPvsClose(topPvs *pvs);

/* The PV of this name; the first call connects it. NULL, with a message, if there is no room for more. */
topPv *topPvsGet(topPvs *pvs, const char *name, topKind kind);

/* Lets libca work; does not wait. */
void topPvsPoll(topPvs *pvs);

/* Values stay as they are until it ends; then all are read again. */
void topPvsPause(topPvs *pvs, int pause);

/* Writes a text into a topLongText, without waiting for the result. 0, or -1: not allowed, or not connected. */
int topPvPutText(topPv *pv, const char *text);

/* Nonzero: there is a value that can be believed. */
int topPvIsValid(const topPv *pv);

/* How many of the PVs have no value yet. */
unsigned topPvsCountMissing(const topPvs *pvs);

#endif
