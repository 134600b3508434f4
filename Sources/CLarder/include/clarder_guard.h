// What the guard of a plugin takes from C: what has to happen between fork and exec, and signals as a descriptor.
// For a process with a single thread.
#ifndef CLARDER_GUARD_H
#define CLARDER_GUARD_H
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Starts `argv[0]` (looked up in PATH if it has no slash) as the leader of a process group of its own, with the
/// default action for every signal, an empty mask, this process's environment, and of its descriptors only 0, 1, 2 and
/// `kept` (-1: none more). SIGKILL ends it when this process ends. Returns once it has been executed: 0 with its id, or
/// -errno, and then there is no child.
int larder_spawn_guarded(char *_Nullable const *_Nonnull argv, int kept, pid_t *_Nonnull child);

/// Blocks the signals and makes a close-on-exec, non-blocking descriptor that is readable while one of them is pending.
/// A descriptor, or -errno.
int larder_signal_descriptor(const int *_Nonnull signals, size_t count);

/// Takes the next pending signal from such a descriptor; 0 if there is none.
int larder_signal_next(int fd);

#ifdef __cplusplus
}
#endif
#endif
