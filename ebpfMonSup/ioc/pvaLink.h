/* SPDX-License-Identifier: BSD-3-Clause */
/* Links of pvAccess: a link field with JSON, {"pva": "PV"} or {"pva": {"pv": "PV", "proc": "CP", …}} (pvalink of both
 * QSRVs). No state; any thread. */
#ifndef EBPFMON_PVALINK_H
#define EBPFMON_PVALINK_H

#include "ioc/baseLink.h"

#define EBPFMON_PVA_LINK_TEXT 512 /* bytes of a link's text that are read: longer ones are not understood */

typedef struct {
    char pv[128]; /* as in the link */
    int  isCp;    /* nonzero: its monitor processes the record: proc is CP or CPP */
} ebpfMonPvaLink;

/* 0, or -1: this text is no link of pvAccess. */
int ebpfMonPvaLinkParse(const char *text, ebpfMonPvaLink *pva);

/* Nonzero: the link has a text of JSON, at address link->value. */
int ebpfMonPvaLinkIsJson(const ebpfMonLink *link);

/* A number that stands for links to this PV, and is no address. */
uint64_t ebpfMonPvaLinkKey(const char *pv);

#endif
