/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsTime.h>

#include "topPage.h"

static const topTableSpec histogramSpec = {"LATENCY", {
    {"CHAIN_HIST_EDGES", "from us", topAsThousandths}, {"CHAIN_HIST", "chains", topAsCount}}, TOP_NONE, 0};

int topDataOpen(topData *data, const char *prefix)
{
    if (topPvsOpen(&data->pvs, prefix))
        return -1;
    for (unsigned i = 0; i < topItems; i++)
        if (!(data->item[i] = topPvsGet(&data->pvs, topItemSpecs[i].name, topItemSpecs[i].kind)))
            return -1;
    for (unsigned i = 0; i < topTables; i++)
        if (topTableOpen(&data->table[i], &topTableSpecs[i], &data->pvs))
            return -1;
    for (unsigned i = 0; i < topTextCount; i++)
        if (!(data->text[i] = topPvsGet(&data->pvs, topTextSpecs[i].name, topLongText)))
            return -1;
    data->state = topPvsGet(&data->pvs, "STATE", topText);
    data->root = topPvsGet(&data->pvs, "CHAIN_HIST_ROOT.VAL$", topLongText);
    return data->state && data->root ? topTableOpen(&data->histogram, &histogramSpec, &data->pvs) : -1;
}

void topDataClose(topData *data)
{
    topPvsClose(&data->pvs); /* close this first: until it returns, answers may come and use the tables */
    for (unsigned i = 0; i < topTables; i++)
        topTableClose(&data->table[i]);
    topTableClose(&data->histogram);
}

int topDataRead(topData *data)
{
    int isComplete = 1;

    topPvsPoll(&data->pvs);
    for (unsigned i = 0; i < topTables; i++)
        isComplete &= topTableRead(&data->table[i]);
    isComplete &= topTableRead(&data->histogram);
    if (data->state->isConnected || !data->state->isKnown)
        data->lostAt = (epicsTimeStamp){0, 0};
    else if (!data->lostAt.secPastEpoch)
        epicsTimeGetCurrent(&data->lostAt);
    return isComplete && data->state->isConnected && !topPvsCountMissing(&data->pvs);
}
