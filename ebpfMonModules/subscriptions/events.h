/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* How subscriptions lie in releases of EPICS Base. Made by tools/layout.sh. */
/* The numbers behind the release are:
 * subscription.user_arg, subscription.ev_que, subscription.npend, subscription.nreplace, subscription.select,
 * subscription.enabled, subscription.useValque, queue.evUser, queue.getix, user.extralabor_arg, user.flowCtrlMode,
 * ext.pciu, ext.pdbev, client.sendStk, client.evuser */
EVENTS("7.0.8 to 7.0.10.1-DEV", 32, 40, 56, 64, 72, 75, 73, 2320, 2330, 2400, 2426, 40, 48, 24, 200)
EVENTS("7.0.3.1 to 7.0.5", 32, 40, 56, 64, 72, 75, 73, 2320, 2330, 2376, 2406, 40, 48, 24, 200)
EVENTS("7.0.3 to 7.0.7", 32, 40, 56, 64, 72, 75, 73, 2320, 2330, 2384, 2414, 40, 48, 24, 200)
EVENTS("3.15.0.2 to 7.0.2.2", 32, 40, 56, 64, 72, 75, 73, 2064, 2074, 2128, 2158, 40, 48, 24, 200)
EVENTS("3.14.12.8", 32, 40, 56, 64, 72, 75, 73, 4112, 4122, 4176, 4206, 40, 48, 24, 200)
EVENTS("3.14.12 to 3.14.12.7", 32, 40, 56, 64, 72, 75, 73, 4112, 4122, 4168, 4198, 40, 48, 24, 200)
