/* SPDX-License-Identifier: BSD-3-Clause */
/* What a key does. */
#ifndef TOPKEYS_H
#define TOPKEYS_H

#include "topPage.h"

/* Keys that are no characters; the screen translates those of ncurses. */
enum { topKeyUp = 0x1000, topKeyDown, topKeyPageUp, topKeyPageDown, topKeyHome, topKeyEnd, topKeyEnter, topKeyEscape,
       topKeyErase };

typedef struct {
    topLook *look;
    topData *data;
    int      isTyping;   /* the text of a filter */
    char     message[120]; /* for the last line; empty: none */
    int      isEnding;
} topKeys;

/* "page": lines of the screen. */
void topKeysDo(topKeys *keys, int key, unsigned page);

#endif
