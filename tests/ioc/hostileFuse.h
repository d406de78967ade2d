/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file system of an ordinary user that stops answering. Anybody may mount one: in a user namespace of his own, without
 * help of fusermount.
 */
#ifndef HOSTILEFUSE_H
#define HOSTILEFUSE_H

/* Mounts it on "folder", with one file "file" that has the content of this program. A child process serves it until the
 * pipe *quiet is closed by all who have it, and answers nothing from then on. "device": /dev/fuse, or a node like it.
 * Returns 0, or -1 with errno. */
int hostileMountFuse(const char *device, const char *folder, int *quiet);

#endif
