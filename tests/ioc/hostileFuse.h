/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A FUSE file system that stops answering. Every user can mount one in a user namespace, without fusermount.
 */
#ifndef HOSTILEFUSE_H
#define HOSTILEFUSE_H

/* Mounts the file system on "folder". It has one file, "file", with the content of this program. A child process
 * answers its requests until all processes have closed the pipe *quiet, and none after that. "device" is /dev/fuse, or
 * another node of this device. Returns 0, or -1 with errno. */
int hostileMountFuse(const char *device, const char *folder, int *quiet);

#endif
