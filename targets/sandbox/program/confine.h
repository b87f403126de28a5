/* Confinement of a process by the kernel: limits, Landlock, seccomp. */
#pragma once
#include <stddef.h>

enum { REFUSED = 40 }; /* exit status: this machine cannot confine */

/* Landlock ABI of this kernel; 0 where there is none. */
int landlock_abi(void);

/* No core files, no new privileges, death with the parent, and limits (0: unlimited). */
void confine_process(long parent, unsigned long stack_bytes, unsigned long cpu_s,
                     unsigned long space_bytes, unsigned long file_bytes, unsigned long processes);

/* What is left of the file system, with all that lies below; each list ends with NULL. */
struct paths {
    const char *const *listed;   /* names only */
    const char *const *readable; /* read, execute */
    const char *const *writable; /* everything */
};

/* Leaves only `paths` of the file system, no TCP, no signals to others. Does nothing where there
 * is no Landlock; returns 0, or -1 if the kernel has it and refuses. */
int confine_files(const struct paths *paths);

/* No other processes, only threads; no sockets, no signals to others, no way around the filter.
 * What is refused fails with EPERM. Returns 0, or -1. */
int confine_alone(void);

/* What a process may still ask of the kernel while an artifact is loaded, and while it runs;
 * both may write to `fd` alone. Everything else raises SIGSYS. Return 0, or -1. */
int confine_loading(int fd);
int confine_running(int fd);
