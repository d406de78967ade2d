/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the heat maps. A column is a time; the last one is the newest. A row is a record, or an octave of
 * latency; the first row is at the top. NaN: not known, or before the start. */
#ifndef EBPFMON_HEATVALUES_H
#define EBPFMON_HEATVALUES_H

#include "model/recordValues.h"

#define EBPFMON_HEAT_COLUMNS 60 /* columns of EBPFMON_HEAT_SECONDS: ten minutes */
#define EBPFMON_HEAT_SECONDS 10.0
#define EBPFMON_HEAT_RECORDS 32
#define EBPFMON_HEAT_OCTAVES EBPFMON_HIST_MAX

typedef struct {
    char     name[EBPFMON_NAME_SIZE];
} ebpfMonHeatRow;

typedef struct {
    unsigned records;      /* rows in use; the other names are empty */
    ebpfMonHeatRow record[EBPFMON_HEAT_RECORDS];
    double   rate[EBPFMON_HEAT_RECORDS * EBPFMON_HEAT_COLUMNS];    /* processings per second */
    double   chains[EBPFMON_HEAT_OCTAVES * EBPFMON_HEAT_COLUMNS];  /* chains that ended; the longest octave first */
} ebpfMonHeatValues;

#endif
