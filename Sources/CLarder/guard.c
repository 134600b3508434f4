// The guard's part in C; the contracts are in clarder_guard.h.
#define _GNU_SOURCE
#include "clarder_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

static int set_cloexec_range(unsigned first, unsigned last) {
    if (first > last) return 0;
#ifdef SYS_close_range
    return (int)syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC);
#else
    errno = ENOSYS;
    return -1;
#endif
}

/// Leaves 0, 1, 2 and `kept` alone to the program that is executed next.
static void close_others_on_exec(int kept) {
    int failed = kept < 3 ? set_cloexec_range(3, UINT_MAX)
                          : set_cloexec_range(3, (unsigned)kept - 1) | set_cloexec_range((unsigned)kept + 1, UINT_MAX);
    if (failed) {  // before Linux 5.11
        struct rlimit limit;
        rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? limit.rlim_cur : 65536;
        for (int fd = 3; (rlim_t)fd < end; fd++)
            if (fd != kept) fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    if (kept >= 3) fcntl(kept, F_SETFD, 0);
}

/// In the child, between fork and exec; returns only if exec fails.
static void become(char *const argv[], int kept, pid_t guard) {
    setpgid(0, 0);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != guard) _exit(127);  // it ended before the line above could count
    close_others_on_exec(kept);
    execvp(argv[0], argv);
}

int larder_spawn_guarded(char *const argv[], int kept, pid_t *child) {
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0) return -errno;
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become(argv, kept, guard);
        int error = errno;
        ssize_t n = write(report[1], &error, sizeof error);
        (void)n;
        _exit(127);
    }
    int error = errno;
    close(report[1]);
    if (pid < 0) {
        close(report[0]);
        return -error;
    }
    setpgid(pid, pid);  // as the child does: whoever comes first, the group is there when this returns
    ssize_t n;
    do {
        n = read(report[0], &error, sizeof error);
    } while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof error) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        return error == 0 ? -EIO : -error;
    }
    *child = pid;
    return 0;
}

int larder_signal_descriptor(const int *signals, size_t count) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) sigaddset(&set, signals[i]);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) return -errno;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int larder_signal_next(int fd) {
    struct signalfd_siginfo info;
    ssize_t n;
    do {
        n = read(fd, &info, sizeof info);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
