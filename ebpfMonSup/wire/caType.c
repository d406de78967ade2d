/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/caType.h"

/* Offsets of "value" in the structs of db_access.h, which are sent as they are in memory, with their padding. */
const ebpfMonCaType ebpfMonCaTypes[EBPFMON_CA_TYPES] = {
    /*           STRING        SHORT        FLOAT        ENUM          CHAR         LONG         DOUBLE */
    /* plain */ { 0, 40, 0 }, { 1, 2, 0 }, { 2, 4, 0 }, { 3, 2, 0 }, { 4, 1, 0 }, { 5, 4, 0 }, { 6, 8, 0 },
    /* STS */   { 0, 40, 4 }, { 1, 2, 4 }, { 2, 4, 4 }, { 3, 2, 4 }, { 4, 1, 5 }, { 5, 4, 4 }, { 6, 8, 8 },
    /* TIME */  { 0, 40, 12 }, { 1, 2, 14 }, { 2, 4, 12 }, { 3, 2, 14 }, { 4, 1, 15 }, { 5, 4, 12 }, { 6, 8, 16 },
    /* GR */    { 0, 40, 4 }, { 1, 2, 24 }, { 2, 4, 40 }, { 3, 2, 422 }, { 4, 1, 19 }, { 5, 4, 36 }, { 6, 8, 64 },
    /* CTRL */  { 0, 40, 4 }, { 1, 2, 28 }, { 2, 4, 48 }, { 3, 2, 422 }, { 4, 1, 21 }, { 5, 4, 44 }, { 6, 8, 80 },
    /* DBR_PUT_ACKT, DBR_PUT_ACKS: 16 bits without sign; DBR_STSACK_STRING; DBR_CLASS_NAME */
    { 3, 2, 0 }, { 3, 2, 0 }, { 0, 40, 8 }, { 0, 40, 0 }
};
