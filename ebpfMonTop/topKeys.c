/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <string.h>

#include <epicsStdio.h>

#include "topKeys.h"

#define ROWS_MAX 400

static void moveTo(topKeys *keys, long to)
{
    topLook *look = keys->look;
    unsigned rows[ROWS_MAX], count;

    if (!topPageGetFocus(keys->data, look, rows, ROWS_MAX, &count)) {
        look->scroll = to > 0 ? (unsigned)to : 0; /* a page of text; topPageMake knows its end */
        return;
    }
    if (to >= (long)count)
        to = (long)count - 1;
    look->cursor = to > 0 ? (unsigned)to : 0;
}

static long getCursor(const topKeys *keys)
{
    unsigned rows[ROWS_MAX], count;

    return topPageGetFocus(keys->data, keys->look, rows, ROWS_MAX, &count) ? keys->look->cursor : keys->look->scroll;
}

/* Copies the name of the record in the row of the cursor. 0, or -1: there is none, and a message says so. */
static int getRecord(topKeys *keys, char *name, size_t size)
{
    unsigned rows[ROWS_MAX], count;
    const topTable *table = topPageGetFocus(keys->data, keys->look, rows, ROWS_MAX, &count);

    name[0] = 0;
    if (table && keys->look->cursor < count)
        topTableGetRecord(table, rows[keys->look->cursor], name, size);
    if (!name[0])
        epicsSnprintf(keys->message, sizeof(keys->message), "this row has no record: Tab goes to another table");
    return name[0] ? 0 : -1;
}

static void enterRecord(topKeys *keys)
{
    char name[sizeof(keys->look->record)];

    if (keys->look->record[0] || getRecord(keys, name, sizeof(name)))
        return;
    strcpy(keys->look->record, name);
    keys->look->focus = keys->look->cursor = 0;
}

static void goBack(topKeys *keys)
{
    topLook *look = keys->look;

    if (look->isHelp)
        look->isHelp = 0;
    else if (look->record[0]) {
        look->record[0] = 0;
        look->focus = 0; /* the view may have fewer tables than the page of a record */
    } else
        look->filter[0] = 0;
    look->cursor = look->scroll = 0;
}

static void setView(topKeys *keys, unsigned view)
{
    topLook *look = keys->look;

    look->view = view;
    look->record[0] = 0;
    look->focus = look->cursor = look->scroll = 0;
    look->isHelp = 0;
}

static void focusNextTable(topKeys *keys)
{
    int tables[TOP_VIEW_TABLES];
    unsigned count = topPageListTables(keys->look, tables) + (topPageHasTexts(keys->look) != 0);

    keys->look->focus = count ? (keys->look->focus + 1) % count : 0;
    keys->look->cursor = keys->look->scroll = 0;
}

static topTable *getTable(topKeys *keys)
{
    int tables[TOP_VIEW_TABLES];
    unsigned count = topPageListTables(keys->look, tables);

    return keys->look->focus < count ? &keys->data->table[tables[keys->look->focus]] : NULL;
}

static void chooseSorting(topKeys *keys, int step)
{
    topTable *table = getTable(keys);

    if (!table)
        return;
    if (!step) {
        table->sortBy = -1;
        table->isReversed = 0;
        return;
    }
    do {
        table->sortBy += step;
        if (table->sortBy < 0)
            table->sortBy = (int)table->columns - 1;
        if (table->sortBy >= (int)table->columns)
            table->sortBy = 0;
    } while (table->spec->column[table->sortBy].format == topAsFlag);
}

static void chooseHistogram(topKeys *keys, int ofAll)
{
    char name[sizeof(keys->look->record)] = "";

    if (!ofAll && keys->look->record[0])
        strcpy(name, keys->look->record);
    else if (!ofAll && getRecord(keys, name, sizeof(name)))
        return;
    if (topTableIsCut(name))
        epicsSnprintf(keys->message, sizeof(keys->message),
                      "this name is cut: start ebpfMonTop -e RECORD with its whole name, and press h there");
    else if (topPvPutText(keys->data->root, name))
        epicsSnprintf(keys->message, sizeof(keys->message),
                      "you may not write %sCHAIN_HIST_ROOT, so the histogram does not change", keys->data->pvs.prefix);
}

static void typeFilter(topKeys *keys, int key)
{
    topLook *look = keys->look;
    size_t length = strlen(look->filter);

    if (key == topKeyEnter)
        keys->isTyping = 0;
    else if (key == topKeyEscape) {
        keys->isTyping = 0;
        look->filter[0] = 0;
    } else if (key == topKeyErase && length)
        look->filter[length - 1] = 0;
    else if (key < 0x100 && isprint(key) && length + 1 < sizeof(look->filter)) {
        look->filter[length] = (char)key;
        look->filter[length + 1] = 0;
    }
    look->cursor = 0;
}

static int moveCursor(topKeys *keys, int key, unsigned page)
{
    long place = getCursor(keys);

    switch (key) {
    case topKeyUp:       moveTo(keys, place - 1); return 1;
    case topKeyDown:     moveTo(keys, place + 1); return 1;
    case topKeyPageUp:   moveTo(keys, place - (long)page / 2); return 1;
    case topKeyPageDown: moveTo(keys, place + (long)page / 2); return 1;
    case topKeyHome:     moveTo(keys, 0); return 1;
    case topKeyEnd:      moveTo(keys, TOP_ALL_LINES); return 1;
    default:             return 0;
    }
}

static int runKey(topKeys *keys, int key)
{
    topTable *table;

    switch (key) {
    case 'q': keys->isEnding = 1; return 1;
    case '\t': focusNextTable(keys); return 1;
    case topKeyEnter: enterRecord(keys); return 1;
    case topKeyEscape:
    case topKeyErase: goBack(keys); return 1;
    case '<': chooseSorting(keys, -1); return 1;
    case '>': chooseSorting(keys, 1); return 1;
    case '=': chooseSorting(keys, 0); return 1;
    case 'r':
        if ((table = getTable(keys)) != NULL)
            table->isReversed = !table->isReversed;
        return 1;
    case '/': keys->isTyping = 1; return 1;
    case 'h': chooseHistogram(keys, 0); return 1;
    case 'H': chooseHistogram(keys, 1); return 1;
    case '?':
        keys->look->isHelp = !keys->look->isHelp;
        keys->look->scroll = 0;
        return 1;
    case ' ':
        keys->look->isPaused = !keys->look->isPaused;
        topPvsPause(&keys->data->pvs, keys->look->isPaused);
        return 1;
    default: return 0;
    }
}

void topKeysDo(topKeys *keys, int key, unsigned page)
{
    keys->message[0] = 0;
    if (keys->isTyping) {
        typeFilter(keys, key);
        return;
    }
    if (moveCursor(keys, key, page) || runKey(keys, key))
        return;
    for (unsigned i = 0; i < topViews; i++)
        if (topViewSpecs[i].key == key)
            setView(keys, i);
}
