/* SPDX-License-Identifier: BSD-3-Clause */
/* Does what a key means. One thread. */
#ifndef TOPKEYS_H
#define TOPKEYS_H

#include "topPage.h"

/* Keys that are not characters. topScreen.c translates the keys of ncurses. */
enum { topKeyUp = 0x1000, topKeyDown, topKeyPageUp, topKeyPageDown, topKeyHome, topKeyEnd, topKeyEnter, topKeyEscape,
       topKeyErase };

typedef struct {
    topLook *look;
    topData *data;
    int      isTyping;   /* the user types the text of a filter */
    char     message[120]; /* for the last line of the screen; empty: none */
    int      isEnding;   /* the user wants to end */
} topKeys;

/* "key": a character or a key of the enum; "page": number of lines of the screen. */
void topKeysDo(topKeys *keys, int key, unsigned page);

#endif
