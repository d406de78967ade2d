/* SPDX-License-Identifier: BSD-3-Clause */
/* One write to a field, as people want to read it. */
#ifndef EBPFMON_PUT_H
#define EBPFMON_PUT_H

#include <stddef.h>
#include <stdint.h>
#include <epicsTime.h>

#define EBPFMON_NAME_SIZE 61   /* PVNAME_STRINGSZ: 60 characters */
#define EBPFMON_TEXT_SIZE 512  /* a value as text; what is cut ends in "..." */
#define EBPFMON_WHO_SIZE  192
#define EBPFMON_LINE_SIZE 1400 /* a put in one line */

typedef enum {
    ebpfMonPutOk,
    ebpfMonPutFailed,   /* "status" has the EPICS status */
    ebpfMonPutDenied,   /* access security, or a field that nobody may write */
    ebpfMonPutUnknown   /* seen, but its result was not (no return probe on this IOC) */
} ebpfMonPutResult;

typedef struct {
    epicsTimeStamp time;
    char     ioc[EBPFMON_NAME_SIZE];
    char     pv[EBPFMON_NAME_SIZE + 8]; /* RECORD.FIELD; plain RECORD for VAL */
    char     val[EBPFMON_TEXT_SIZE];
    char     old[EBPFMON_TEXT_SIZE];
    char     user[40];   /* claimed by the client; for a local client without a claim its real one */
    char     host[64];   /* claimed by the client, else its address */
    char     who[EBPFMON_WHO_SIZE];  /* user@host, and what we verified of it */
    char     origin[96]; /* CA 127.0.0.1:51234, PVA …, thread scan-1 (chain of X) */
    ebpfMonPutResult result;
    long     status;
    uint32_t peerPid;    /* local client: its process, else 0 */
} ebpfMonPut;

/* "2026-11-21 07:28:03.123456 PV old → new by who (origin)" and the result where it is not ok.
 * Returns the length; too long ends in "...". */
size_t ebpfMonPutLine(const ebpfMonPut *put, char *buf, size_t size);

/* Copies "src", what does not fit ends in "...". Nonzero when it was cut. */
int ebpfMonTextCopy(char *dst, size_t size, const char *src);

#endif
