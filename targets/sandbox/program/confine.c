#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows x86-64 and aarch64 only"
#endif

/* ---- limits ---------------------------------------------------------------------------- */

static void limit(int what, unsigned long value)
{
    struct rlimit at_most = {value, value};
    if (value)
        setrlimit(what, &at_most);
}

void confine_process(long parent, unsigned long stack_bytes, unsigned long cpu_s,
                     unsigned long space_bytes, unsigned long file_bytes, unsigned long processes)
{
    struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before the line above */
        _exit(1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setrlimit(RLIMIT_CORE, &none);
    limit(RLIMIT_STACK, stack_bytes);
    limit(RLIMIT_CPU, cpu_s);
    limit(RLIMIT_AS, space_bytes);
    limit(RLIMIT_FSIZE, file_bytes);
    limit(RLIMIT_NPROC, processes);
}

/* ---- Landlock: numbers of the kernel's ABI, which older system headers lack ------------- */

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3 };
enum { REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15 };
enum { OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV };

struct ruleset { uint64_t files, net, scoped; };
struct path_rule { uint64_t access; int32_t fd; } __attribute__((packed));

int landlock_abi(void)
{
    long abi = syscall(CREATE_RULESET, NULL, 0, 1);
    return abi < 0 ? 0 : (int)abi;
}

static struct ruleset ruleset_of(int abi)
{
    struct ruleset rules = {0x1fff, 0, 0};
    if (abi >= 2)
        rules.files |= REFER;
    if (abi >= 3)
        rules.files |= TRUNCATE;
    if (abi >= 4)
        rules.net = 3;
    if (abi >= 5)
        rules.files |= IOCTL_DEV;
    if (abi >= 6)
        rules.scoped = 3;
    return rules;
}

static int allow_path(int ruleset, const char *path, uint64_t access)
{
    struct stat about;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (fstat(fd, &about) == 0 && !S_ISDIR(about.st_mode))
        access &= OF_A_FILE;
    struct path_rule rule = {access, fd};
    int bad = (int)syscall(ADD_RULE, ruleset, 1, &rule, 0);
    close(fd);
    return bad;
}

static int allow_paths(int ruleset, const char *const *paths, uint64_t access)
{
    int bad = 0;
    for (; *paths; paths++)
        bad |= allow_path(ruleset, *paths, access);
    return bad;
}

int confine_files(const struct paths *paths)
{
    int abi = landlock_abi();
    if (!abi)
        return 0;
    struct ruleset rules = ruleset_of(abi);
    int fd = (int)syscall(CREATE_RULESET, &rules, sizeof rules, 0);
    if (fd < 0)
        return -1;
    int bad = allow_paths(fd, paths->listed, READ_DIR);
    bad |= allow_paths(fd, paths->readable, EXECUTE | READ_FILE | READ_DIR);
    bad |= allow_paths(fd, paths->writable, rules.files);
    if (!bad)
        bad = (int)syscall(RESTRICT_SELF, fd, 0);
    close(fd);
    return bad;
}

/* ---- seccomp --------------------------------------------------------------------------- */

enum { PIDFD_SEND_SIGNAL = 424, IO_URING_SETUP = 425, PIDFD_OPEN = 434, CLONE3 = 435 };
enum { MAX_FILTER = 96, CHANGES = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND };

struct program { struct sock_filter lines[MAX_FILTER]; unsigned short n; };

static void add(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t value)
{
    p->lines[p->n++] = (struct sock_filter){code, yes, no, value};
}

static void load(struct program *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct program *p, uint32_t value)
{
    add(p, BPF_RET | BPF_K, 0, 0, value);
}

static void begin(struct program *p)
{
    p->n = 0;
    load(p, offsetof(struct seccomp_data, arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCH);
    answer(p, SECCOMP_RET_TRAP);
    load(p, offsetof(struct seccomp_data, nr));
}

static void allow(struct program *p, int call)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)call);
    answer(p, SECCOMP_RET_ALLOW);
}

static void allow_write_to(struct program *p, int fd)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_write);
    load(p, offsetof(struct seccomp_data, args[0]));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, (uint32_t)fd);
    answer(p, SECCOMP_RET_TRAP);
    answer(p, SECCOMP_RET_ALLOW);
}

static void allow_open_to_read(struct program *p)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_openat);
    load(p, offsetof(struct seccomp_data, args[2]));
    add(p, BPF_JMP | BPF_JSET | BPF_K, 0, 1, CHANGES);
    answer(p, SECCOMP_RET_TRAP);
    answer(p, SECCOMP_RET_ALLOW);
}

static void refuse(struct program *p, int call, int error)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)call);
    answer(p, SECCOMP_RET_ERRNO | (uint32_t)error);
}

/* Refuses `call` unless the low word of its first argument has a bit of, or is, `value`. */
static void refuse_unless(struct program *p, int call, uint16_t test, uint32_t value)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)call);
    load(p, offsetof(struct seccomp_data, args[0]));
    add(p, BPF_JMP | test | BPF_K, 1, 0, value);
    answer(p, SECCOMP_RET_ERRNO | EPERM);
    answer(p, SECCOMP_RET_ALLOW);
}

static int install(struct program *p, uint32_t otherwise)
{
    answer(p, otherwise);
    struct sock_fprog filter = {p->n, p->lines};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
}

int confine_loading(int fd)
{
    static const int calls[] = {
        SYS_read, SYS_pread64, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_mmap, SYS_mprotect,
        SYS_munmap, SYS_madvise, SYS_brk, SYS_close, SYS_getcwd, SYS_readlinkat, SYS_getrandom,
        SYS_futex, SYS_prctl, SYS_clock_gettime, SYS_rt_sigreturn, SYS_exit_group,
    };
    struct program p;
    begin(&p);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        allow(&p, calls[i]);
    allow_write_to(&p, fd);
    allow_open_to_read(&p);
    return install(&p, SECCOMP_RET_TRAP);
}

int confine_running(int fd)
{
    struct program p;
    begin(&p);
    allow(&p, SYS_clock_gettime);
    allow(&p, SYS_rt_sigreturn);
    allow(&p, SYS_exit_group);
    allow_write_to(&p, fd);
    return install(&p, SECCOMP_RET_TRAP);
}

int confine_alone(void)
{
    static const int calls[] = {
#if defined(__x86_64__)
        SYS_fork, SYS_vfork,
#endif
        SYS_socket, SYS_socketpair, SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo,
        SYS_rt_tgsigqueueinfo, SYS_ptrace,
        SYS_process_vm_readv, SYS_process_vm_writev, SYS_unshare, SYS_setns, SYS_mount, SYS_bpf,
        SYS_perf_event_open, SYS_userfaultfd, SYS_keyctl, SYS_add_key, SYS_request_key,
    };
    struct program p;
    begin(&p);
#if defined(__x86_64__)
    add(&p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* the x32 names of the same calls */
    answer(&p, SECCOMP_RET_ERRNO | EPERM);
#endif
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        refuse(&p, calls[i], EPERM);
    refuse(&p, IO_URING_SETUP, EPERM);
    refuse(&p, PIDFD_SEND_SIGNAL, EPERM);
    refuse(&p, PIDFD_OPEN, EPERM);
    refuse(&p, CLONE3, ENOSYS); /* its flags cannot be seen here; libraries then call clone */
    refuse_unless(&p, SYS_clone, BPF_JSET, CLONE_THREAD);
    refuse_unless(&p, SYS_tgkill, BPF_JEQ, (uint32_t)getpid());
    return install(&p, SECCOMP_RET_ALLOW);
}
