/* Runs the launches of one job in this process and reports each of them to the parent. */
#define _GNU_SOURCE
#include "job.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "confine.h"

enum { CANARY = 0xa5, LINE = 64, MAX_ARMS = 16, MAX_BUFFERS = 32 };
enum { STACK = 512 << 10, STACK_SLACK = 512, ALT_STACK = 64 << 10, PROBE_STEPS = 300000 };
enum { LARGEST_PAGE = 64 << 10 };
enum { NOWHERE, BEFORE, INSIDE, PAST };

typedef void kernel_fn(void **);

/* A buffer in memory: `region` is whole pages between two guard pages, `start` its first byte. */
struct place { uint8_t *region, *start; };

/* All that launches follow. It is read-only when they begin, so that no artifact can change which
   kernel is called or on what, and it has pages of its own, however large the machine's are. */
static union {
    struct {
        const struct job *job;
        const struct buffer *buffers;
        const uint64_t *weight_offsets, *input_offsets;
        const struct step *steps;
        kernel_fn *kernels[MAX_ARMS];
        struct place *weights, *inputs, *outputs; /* [copy | variant | room][buffer] */
        char *stack_floor; /* no access below it */
        int out_fd;
    };
    char pages[LARGEST_PAGE];
} plan __attribute__((aligned(LARGEST_PAGE)));
static volatile uint64_t now_at;

/* ---- reports --------------------------------------------------------------------------- */

static void send_all(const void *data, size_t n)
{
    for (const char *at = data; n;) {
        ssize_t sent = write(plan.out_fd, at, n);
        if (sent <= 0)
            _exit(1);
        at += sent;
        n -= (size_t)sent;
    }
}

static void tell(uint64_t kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    struct report report = {kind, now_at, a, b, c, d};
    send_all(&report, sizeof report);
}

static _Noreturn void broken(const char *what)
{
    tell(BROKEN, strlen(what), 0, 0, 0);
    send_all(what, strlen(what));
    _exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- memory ---------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

static size_t region_bytes(int b) { return round_up(plan.buffers[b].n_bytes, plan.job->page); }

/* Maps buffer `b` so that its last cache line ends at the guard page. */
static struct place place(int b, int fd, uint64_t offset)
{
    size_t n = region_bytes(b), page = plan.job->page;
    uint8_t *base = mmap(NULL, n + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        broken("no address space for the buffers");
    uint8_t *region = base + page;
    int flags = MAP_PRIVATE | MAP_FIXED | MAP_POPULATE | (fd < 0 ? MAP_ANONYMOUS : 0);
    int access = fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    if (mmap(region, n, access, flags, fd, (off_t)offset) == MAP_FAILED)
        broken("no memory for the buffers");
    return (struct place){region, region + n - round_up(plan.buffers[b].n_bytes, LINE)};
}

static struct place *places(uint64_t n)
{
    size_t bytes = n * plan.job->n_buffers * sizeof(struct place);
    void *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        broken("no memory");
    return all;
}

static void make_read_only(void *start, size_t bytes)
{
    if (mprotect(start, bytes, PROT_READ))
        broken("its plan cannot be made read-only");
}

static void fix_plan(void)
{
    size_t one = plan.job->n_buffers * sizeof(struct place);
    make_read_only(plan.weights, plan.job->n_copies * one);
    make_read_only(plan.inputs, plan.job->n_variants * one);
    make_read_only(plan.outputs, plan.job->n_rooms * one);
    make_read_only(&plan, sizeof plan);
}

static int is_writable(int b) { return plan.buffers[b].role >= ROLE_OUT; }

static int is_output(int b)
{
    return plan.buffers[b].role == ROLE_OUT || plan.buffers[b].role == ROLE_INOUT;
}

static int is_input(int b)
{
    return plan.buffers[b].role == ROLE_IN || plan.buffers[b].role == ROLE_INOUT;
}

static void map_buffers(int data)
{
    plan.weights = places(plan.job->n_copies);
    plan.inputs = places(plan.job->n_variants);
    plan.outputs = places(plan.job->n_rooms);
    const uint64_t n = plan.job->n_buffers;
    for (int b = 0; b < (int)n; b++) {
        for (uint64_t i = 0; plan.buffers[b].role == ROLE_WEIGHT && i < plan.job->n_copies; i++)
            plan.weights[i * n + b] = place(b, data, plan.weight_offsets[i * n + b]);
        for (uint64_t i = 0; is_input(b) && i < plan.job->n_variants; i++)
            plan.inputs[i * n + b] = place(b, data, plan.input_offsets[i * n + b]);
        for (uint64_t i = 0; is_writable(b) && i < plan.job->n_rooms; i++)
            plan.outputs[i * n + b] = place(b, -1, 0);
    }
}

/* ---- a launch -------------------------------------------------------------------------- */

static struct place *output_of(const struct step *s, int b)
{
    return &plan.outputs[s->room * plan.job->n_buffers + b];
}

static struct place *input_of(const struct step *s, int b)
{
    return &plan.inputs[s->variant * plan.job->n_buffers + b];
}

static void bind(const struct step *s, void **pointers)
{
    for (int b = 0; b < (int)plan.job->n_buffers; b++)
        pointers[b] = is_writable(b) ? output_of(s, b)->start
                      : plan.buffers[b].role == ROLE_WEIGHT
                          ? plan.weights[s->copy * plan.job->n_buffers + b].start
                          : input_of(s, b)->start;
}

static void poison(const struct step *s)
{
    for (int b = 0; b < (int)plan.job->n_buffers; b++) {
        if (!is_writable(b))
            continue;
        struct place *p = output_of(s, b);
        memset(p->region, CANARY, region_bytes(b));
        if (plan.buffers[b].role == ROLE_INOUT)
            memcpy(p->start, input_of(s, b)->start, plan.buffers[b].n_bytes);
        else
            memset(p->start, (int)s->poison, plan.buffers[b].n_bytes);
    }
}

static int is_canary(const uint8_t *from, const uint8_t *to)
{
    for (; from < to; from++)
        if (*from != CANARY)
            return 0;
    return 1;
}

/* Returns 1 + the number of the first buffer that was overrun; 0 if none was. */
static uint64_t overrun(const struct step *s)
{
    for (int b = 0; b < (int)plan.job->n_buffers; b++) {
        if (!is_writable(b))
            continue;
        struct place *p = output_of(s, b);
        if (!is_canary(p->region, p->start) ||
            !is_canary(p->start + plan.buffers[b].n_bytes, p->region + region_bytes(b)))
            return (uint64_t)b + 1;
    }
    return 0;
}

static void send_outputs(const struct step *s)
{
    uint64_t n = 0;
    for (int b = 0; b < (int)plan.job->n_buffers; b++)
        n += is_output(b) ? plan.buffers[b].n_bytes : 0;
    tell(OUTPUTS, n, 0, 0, 0);
    for (int b = 0; b < (int)plan.job->n_buffers; b++)
        if (is_output(b))
            send_all(output_of(s, b)->start, plan.buffers[b].n_bytes);
}

/* Flags outlast a launch: alignment checks, say, would make the other arm fault. */
static void reset_processor(void)
{
#if defined(__x86_64__)
    __builtin_ia32_writeeflags_u64(0x202);
    __builtin_ia32_ldmxcsr(0x1f80);
#else
    __asm__ volatile("msr fpcr, %0" : : "r"(0ul));
#endif
}

/* Clears what an earlier launch left below the stack pointer, all the way down: an artifact that
   remembers an output need not read the weights again. No calls, which would need room there. */
static __attribute__((noinline)) void scrub_stack(void)
{
    size_t n = (size_t)((char *)__builtin_frame_address(0) - plan.stack_floor) - STACK_SLACK;
    volatile uint64_t *left = __builtin_alloca(n);
    for (size_t i = 0; i < n / sizeof *left; i++)
        left[i] = 0;
}

static uint64_t probe_ns(void)
{
    uint64_t x = 1, begin = now_ns();
    for (int i = 0; i < PROBE_STEPS; i++) {
        x += (uint64_t)i;
        __asm__ volatile("" : "+r"(x));
    }
    return now_ns() - begin;
}

static __attribute__((noinline)) void launch(const struct step *s)
{
    void *pointers[MAX_BUFFERS];
    if (s->probe)
        tell(PROBED, probe_ns(), 0, 0, 0);
    poison(s);
    scrub_stack();
    bind(s, pointers);
    reset_processor();
    tell(STARTED, now_ns(), s->arm, 0, 0);
    uint64_t begin = now_ns();
    plan.kernels[s->arm](pointers);
    uint64_t end = now_ns();
    reset_processor();
    tell(ENDED, begin, end, overrun(s), 0);
    if (s->report)
        send_outputs(s);
}

/* ---- faults ---------------------------------------------------------------------------- */

static int find_in(const struct place *all, uint64_t n, const uint8_t *at, int *buffer)
{
    for (uint64_t i = 0; i < n * plan.job->n_buffers; i++) {
        const uint8_t *region = all[i].region;
        if (!region)
            continue;
        *buffer = (int)(i % plan.job->n_buffers);
        const uint8_t *end = region + region_bytes(*buffer);
        if (at >= region - plan.job->page && at < region)
            return BEFORE;
        if (at >= region && at < end)
            return INSIDE;
        if (at >= end && at < end + plan.job->page)
            return PAST;
    }
    return NOWHERE;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)context;
    int buffer = 0, where = NOWHERE;
    uint64_t call = 0;
    if (signal == SIGSYS)
        call = (uint64_t)(unsigned)info->si_syscall;
    if (signal == SIGSEGV || signal == SIGBUS) {
        where = find_in(plan.weights, plan.job->n_copies, info->si_addr, &buffer);
        if (!where)
            where = find_in(plan.inputs, plan.job->n_variants, info->si_addr, &buffer);
        if (!where)
            where = find_in(plan.outputs, plan.job->n_rooms, info->si_addr, &buffer);
    }
    tell(FAULT, (uint64_t)signal, call, (uint64_t)where, (uint64_t)buffer);
    _exit(1);
}

static void catch_faults(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGTRAP, SIGABRT, SIGXCPU};
    stack_t stack = {.ss_size = ALT_STACK};
    stack.ss_sp = mmap(NULL, ALT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
        broken("no stack for the fault handler");
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGSYS);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &action, NULL);
}

/* ---- the job --------------------------------------------------------------------------- */

static void read_job(int fd)
{
    struct stat about;
    if (fstat(fd, &about))
        _exit(2);
    void *text = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (text == MAP_FAILED)
        broken("the job cannot be read");
    const struct job *job = text;
    plan.job = job;
    plan.buffers = (const struct buffer *)(job + 1);
    plan.weight_offsets = (const uint64_t *)(plan.buffers + job->n_buffers);
    plan.input_offsets = plan.weight_offsets + job->n_copies * job->n_buffers;
    plan.steps = (const struct step *)(plan.input_offsets + job->n_variants * job->n_buffers);
    if (job->magic != JOB_MAGIC || job->n_buffers > MAX_BUFFERS)
        broken("the job has another format");
}

static void find_stack(void)
{
    char line[512];
    uintptr_t from, to, here = (uintptr_t)__builtin_frame_address(0);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && !plan.stack_floor && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && from <= here && here < to)
            plan.stack_floor = (char *)to - STACK;
    if (!plan.stack_floor)
        broken("its stack cannot be found");
    fclose(maps);
}

/* A timed job gets a core, and where the machine lets it, precedence on it: launches of a
   millisecond beside anything else that computes would read several times too long. */
static void pin(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (plan.job->core == UINT64_MAX)
        return;
    CPU_SET(plan.job->core, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        broken("the core cannot be had");
    setpriority(PRIO_PROCESS, 0, -20);
}

static void load_arms(int n, char **fds)
{
    char path[64];
    for (now_at = 0; now_at < (uint64_t)n; now_at++) {
        tell(LOADING, 0, 0, 0, 0);
        snprintf(path, sizeof path, "/proc/self/fd/%s", fds[now_at]);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            broken(dlerror());
        plan.kernels[now_at] = (kernel_fn *)dlsym(handle, "kernel");
        if (!plan.kernels[now_at])
            broken("it defines no function `kernel`");
    }
}

int run_job(int argc, char **argv)
{
    static const char *const nothing[] = {NULL};
    static const struct paths no_paths = {nothing, nothing, nothing};
    plan.out_fd = atoi(argv[5]);
    int n_arms = argc - 6;
    if (n_arms > MAX_ARMS)
        broken("too many arms");
    confine_process(atol(argv[0]), STACK, strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10), 1,
                    1);
    find_stack();
    read_job(atoi(argv[3]));
    map_buffers(atoi(argv[4]));
    pin();
    catch_faults();
    close(atoi(argv[3]));
    close(atoi(argv[4]));
    if (confine_files(&no_paths) || confine_loading(plan.out_fd))
        _exit(REFUSED);
    load_arms(n_arms, argv + 6);
    fix_plan();
    if (confine_running(plan.out_fd))
        _exit(REFUSED);
    now_at = 0;
    tell(READY, 0, 0, 0, 0);
    for (uint64_t i = 0; i < plan.job->n_steps; i++) {
        now_at = i;
        launch(&plan.steps[i]);
    }
    tell(DONE, 0, 0, 0, 0);
    _exit(0);
}
