/* SPDX-License-Identifier: BSD-3-Clause */
#include <poll.h>
#include <stdio.h>

#include <epicsTime.h>

#include "topBatch.h"

#define LIBCA_MS 100 /* libca must be called so often, because it does not always make its file readable */

/* Takes values for so many seconds; "untilReady": returns earlier when all are there. Nonzero: all are there. */
static int readValues(topData *data, double seconds, int untilReady)
{
    epicsTimeStamp begin, now;
    double left = seconds;

    epicsTimeGetCurrent(&begin);
    do {
        struct pollfd file = {.fd = data->pvs.file, .events = POLLIN};

        if (topDataRead(data) && untilReady)
            return 1;
        poll(&file, 1, left * 1e3 < LIBCA_MS ? (int)(left * 1e3) + 1 : LIBCA_MS);
        epicsTimeGetCurrent(&now);
        left = seconds - epicsTimeDiffInSeconds(&now, &begin);
    } while (left > 0);
    return 0;
}

int topBatchRun(topData *data, topLook *look, unsigned count, double seconds, double patience, unsigned rows)
{
    topSheet sheet = {0};
    int status = 0;

    for (unsigned i = 0; i < count; i++) {
        if (i)
            readValues(data, seconds, 0);
        readValues(data, patience, 1);
        status = !data->state->isConnected;
        if (!data->state->isKnown) {
            fprintf(stderr, "ebpfMonTop: no answer from %sSTATE. Check the prefix, whether the monitor runs, and "
                    "whether EPICS_CA_ADDR_LIST has its host\n", data->pvs.prefix);
            continue;
        }
        topPageMake(data, look, TOP_ALL_LINES, rows, &sheet);
        if (i)
            printf("\n");
        topSheetPrint(&sheet, stdout);
        if (fflush(stdout))
            break; /* the reader has closed the pipe */
    }
    topSheetFree(&sheet);
    return status;
}
