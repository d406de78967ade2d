/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "host/syscallName.h"

/* The system calls of Linux by name (asm-generic/unistd.h, and those that x86-64 has besides), each as CALL(name). */
#define EBPFMON_SYSCALLS \
    CALL(read) CALL(write) CALL(close) CALL(fstat) CALL(lseek) CALL(mmap) CALL(mprotect) \
    CALL(munmap) CALL(brk) CALL(rt_sigaction) CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(ioctl) CALL(pread64) \
    CALL(pwrite64) CALL(readv) CALL(writev) CALL(sched_yield) CALL(mremap) CALL(msync) CALL(mincore) CALL(madvise) \
    CALL(shmget) CALL(shmat) CALL(shmctl) CALL(dup) CALL(nanosleep) CALL(getitimer) CALL(setitimer) CALL(getpid) \
    CALL(sendfile) CALL(socket) CALL(connect) CALL(accept) CALL(sendto) CALL(recvfrom) CALL(sendmsg) CALL(recvmsg) \
    CALL(shutdown) CALL(bind) CALL(listen) CALL(getsockname) CALL(getpeername) CALL(socketpair) CALL(setsockopt) \
    CALL(getsockopt) CALL(clone) CALL(execve) CALL(exit) CALL(wait4) CALL(kill) CALL(uname) CALL(semget) CALL(semop) \
    CALL(semctl) CALL(shmdt) CALL(msgget) CALL(msgsnd) CALL(msgrcv) CALL(msgctl) CALL(fcntl) CALL(flock) CALL(fsync) \
    CALL(fdatasync) CALL(truncate) CALL(ftruncate) CALL(getcwd) CALL(chdir) CALL(fchdir) CALL(fchmod) CALL(fchown) \
    CALL(umask) CALL(gettimeofday) CALL(getrlimit) CALL(getrusage) CALL(sysinfo) CALL(times) CALL(ptrace) \
    CALL(getuid) CALL(syslog) CALL(getgid) CALL(setuid) CALL(setgid) CALL(geteuid) CALL(getegid) CALL(setpgid) \
    CALL(getppid) CALL(setsid) CALL(setreuid) CALL(setregid) CALL(getgroups) CALL(setgroups) CALL(setresuid) \
    CALL(getresuid) CALL(setresgid) CALL(getresgid) CALL(getpgid) CALL(setfsuid) CALL(setfsgid) CALL(getsid) \
    CALL(capget) CALL(capset) CALL(rt_sigpending) CALL(rt_sigtimedwait) CALL(rt_sigqueueinfo) CALL(rt_sigsuspend) \
    CALL(sigaltstack) CALL(personality) CALL(statfs) CALL(fstatfs) CALL(getpriority) CALL(setpriority) \
    CALL(sched_setparam) CALL(sched_getparam) CALL(sched_setscheduler) CALL(sched_getscheduler) \
    CALL(sched_get_priority_max) CALL(sched_get_priority_min) CALL(sched_rr_get_interval) CALL(mlock) CALL(munlock) \
    CALL(mlockall) CALL(munlockall) CALL(vhangup) CALL(pivot_root) CALL(prctl) CALL(adjtimex) CALL(setrlimit) \
    CALL(chroot) CALL(sync) CALL(acct) CALL(settimeofday) CALL(mount) CALL(umount2) CALL(swapon) CALL(swapoff) \
    CALL(reboot) CALL(sethostname) CALL(setdomainname) CALL(init_module) CALL(delete_module) CALL(quotactl) \
    CALL(nfsservctl) CALL(gettid) CALL(readahead) CALL(setxattr) CALL(lsetxattr) CALL(fsetxattr) CALL(getxattr) \
    CALL(lgetxattr) CALL(fgetxattr) CALL(listxattr) CALL(llistxattr) CALL(flistxattr) CALL(removexattr) \
    CALL(lremovexattr) CALL(fremovexattr) CALL(tkill) CALL(futex) CALL(sched_setaffinity) CALL(sched_getaffinity) \
    CALL(io_setup) CALL(io_destroy) CALL(io_getevents) CALL(io_submit) CALL(io_cancel) CALL(lookup_dcookie) \
    CALL(remap_file_pages) CALL(getdents64) CALL(set_tid_address) CALL(restart_syscall) CALL(semtimedop) \
    CALL(fadvise64) CALL(timer_create) CALL(timer_settime) CALL(timer_gettime) CALL(timer_getoverrun) \
    CALL(timer_delete) CALL(clock_settime) CALL(clock_gettime) CALL(clock_getres) CALL(clock_nanosleep) \
    CALL(exit_group) CALL(epoll_ctl) CALL(tgkill) CALL(mbind) CALL(set_mempolicy) CALL(get_mempolicy) CALL(mq_open) \
    CALL(mq_unlink) CALL(mq_timedsend) CALL(mq_timedreceive) CALL(mq_notify) CALL(mq_getsetattr) CALL(kexec_load) \
    CALL(waitid) CALL(add_key) CALL(request_key) CALL(keyctl) CALL(ioprio_set) CALL(ioprio_get) \
    CALL(inotify_add_watch) CALL(inotify_rm_watch) CALL(migrate_pages) CALL(openat) CALL(mkdirat) CALL(mknodat) \
    CALL(fchownat) CALL(newfstatat) CALL(unlinkat) CALL(renameat) CALL(linkat) CALL(symlinkat) CALL(readlinkat) \
    CALL(fchmodat) CALL(faccessat) CALL(pselect6) CALL(ppoll) CALL(unshare) CALL(set_robust_list) \
    CALL(get_robust_list) CALL(splice) CALL(tee) CALL(sync_file_range) CALL(vmsplice) CALL(move_pages) \
    CALL(utimensat) CALL(epoll_pwait) CALL(timerfd_create) CALL(fallocate) CALL(timerfd_settime) \
    CALL(timerfd_gettime) CALL(accept4) CALL(signalfd4) CALL(eventfd2) CALL(epoll_create1) CALL(dup3) CALL(pipe2) \
    CALL(inotify_init1) CALL(preadv) CALL(pwritev) CALL(rt_tgsigqueueinfo) CALL(perf_event_open) CALL(recvmmsg) \
    CALL(fanotify_init) CALL(fanotify_mark) CALL(prlimit64) CALL(name_to_handle_at) CALL(open_by_handle_at) \
    CALL(clock_adjtime) CALL(syncfs) CALL(sendmmsg) CALL(setns) CALL(getcpu) CALL(process_vm_readv) \
    CALL(process_vm_writev) CALL(kcmp) CALL(finit_module) CALL(sched_setattr) CALL(sched_getattr) CALL(renameat2) \
    CALL(seccomp) CALL(getrandom) CALL(memfd_create) CALL(kexec_file_load) CALL(bpf) CALL(execveat) \
    CALL(userfaultfd) CALL(membarrier) CALL(mlock2) CALL(copy_file_range) CALL(preadv2) CALL(pwritev2) \
    CALL(pkey_mprotect) CALL(pkey_alloc) CALL(pkey_free) CALL(statx) CALL(io_pgetevents) CALL(rseq) \
    CALL(pidfd_send_signal) CALL(io_uring_setup) CALL(io_uring_enter) CALL(io_uring_register) CALL(open_tree) \
    CALL(move_mount) CALL(fsopen) CALL(fsconfig) CALL(fsmount) CALL(fspick) CALL(pidfd_open) CALL(clone3) \
    CALL(close_range) CALL(openat2) CALL(pidfd_getfd) CALL(faccessat2) CALL(process_madvise) CALL(epoll_pwait2) \
    CALL(mount_setattr) CALL(quotactl_fd) CALL(landlock_create_ruleset) CALL(landlock_add_rule) \
    CALL(landlock_restrict_self) CALL(memfd_secret) CALL(process_mrelease) CALL(futex_waitv) \
    CALL(set_mempolicy_home_node)

#if defined(__x86_64__)
#define EBPFMON_SYSCALLS_MORE \
    CALL(stat) \
    CALL(lstat) CALL(open) CALL(poll) CALL(access) CALL(pipe) CALL(select) CALL(dup2) CALL(pause) CALL(alarm) \
        CALL(fork) CALL(vfork) CALL(getdents) CALL(rename) CALL(mkdir) CALL(rmdir) CALL(creat) CALL(link) CALL(unlink) \
            CALL(symlink) CALL(readlink) CALL(chmod) CALL(chown) CALL(lchown) CALL(getpgrp) CALL(utime) CALL(mknod) \
                CALL(uselib) CALL(ustat) CALL(sysfs) CALL(modify_ldt) CALL(_sysctl) CALL(arch_prctl) CALL(iopl) \
                    CALL(ioperm) CALL(create_module) CALL(get_kernel_syms) CALL(query_module) CALL(getpmsg) \
                        CALL(putpmsg) CALL(afs_syscall) CALL(tuxcall) CALL(security) CALL(time) CALL(set_thread_area) \
                            CALL(get_thread_area) CALL(epoll_create) CALL(epoll_ctl_old) CALL(epoll_wait_old) \
                                CALL(epoll_wait) CALL(utimes) CALL(vserver) CALL(inotify_init) CALL(futimesat) \
                                    CALL(signalfd) CALL(eventfd)
#else
#define EBPFMON_SYSCALLS_MORE
#endif

/* Numbers differ by machine, and old ones are missing on new machines. */
#define CALL(name) { SYS_##name, #name },
static const struct {
    long number;
    const char *name;
} calls[] = { EBPFMON_SYSCALLS EBPFMON_SYSCALLS_MORE };

#define CALLS (sizeof(calls) / sizeof(calls[0]))

void ebpfMonSyscallName(long number, char *buf, size_t size)
{
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].number == number) {
            snprintf(buf, size, "%s", calls[i].name);
            return;
        }
    snprintf(buf, size, "system call %ld", number);
}

long ebpfMonSyscallNumber(const char *name)
{
    for (size_t i = 0; i < CALLS; i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].number;
    return -1;
}
