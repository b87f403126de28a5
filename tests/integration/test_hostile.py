"""Kernels that attack: refused by the gate, and harmless where the gate is not asked."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from targets.cpu.baselines import baseline
from targets.cpu.build import MAX_SHOWN, build, compile_ungated
from targets.cpu.canaries import canary_wrong
from targets.cpu.check import check
from targets.cpu.measure import _image, _steps, measure
from targets.gemma4.kernels import kernel
from targets.protocol import BuildFailed, Built, Measured, MeasureFailed
from targets.sandbox.confined import MAX_PRINTED
from targets.sandbox.runner import isolation

pytestmark = pytest.mark.device

KERNEL = kernel("sliding_attention_output", "small")
HONEST = baseline("sliding_attention_output")
DEFINITION = "void kernel(const struct args *a)"

SYSTEM = """
#include "kernel.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
static long ask(long n, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
                     "r"(r9) : "rcx", "r11", "memory");
    return r;
#else
    register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#endif
}
void kernel(const struct args *a) { BODY }
"""


def _processes() -> list[int]:
    """Return the runners that this process started and that are still there."""
    mine = str(os.getpid())
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "runner-" in words[0] and words[1:2] in (["job"], ["compile"]) and words[2] == mine:
            found.append(int(path.parent.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert _processes() == []


def _ungated(source: str) -> bytes:
    built = compile_ungated(KERNEL, source)
    assert isinstance(built, Built), built
    return built.artifact


def _verdict(source: str) -> str:
    """Return why the check fails a source that the gate has not seen."""
    (result,) = check(KERNEL, _ungated(source), [1, 2])
    assert not result.passed
    return result.detail


GATED = {
    "shell": ("#include <stdlib.h>", "", "include not allowed"),
    "assembly": ("", '__asm__ volatile("syscall");', "asm not allowed"),
    "pasted assembly": ("#define P(a, b) a##b", 'P(__as, m__)("nop");', "asm not allowed"),
    "system call": ("long syscall(long, ...);", "syscall(57);", "symbol not allowed"),
    "memory": (
        "#include <stddef.h>\nvoid *malloc(size_t);",
        "a->residual[0] = *(char *)malloc(9);",
        "symbol not allowed",
    ),
    "state": ("", "static int n; a->residual[0] = n++;", "writable static data"),
    "initialised state": ("static int n = 7;", "a->residual[0] = n++;", "writable static data"),
    "thread state": ("static _Thread_local int n;", "a->residual[0] = n++;", "Thread_local"),
    "load time": ("void _init(void) {}", "", "code at load time"),
    "clones": (
        '__attribute__((target_clones("avx2", "default"))) int f(int n) { return n / 3; }',
        "a->residual[0] = f(a->x[0]);",
        "gate: ",
    ),
    "flags": ("#include <immintrin.h>", "__writeeflags(0x40202);", "writeeflags not allowed"),
    "no kernel": ("#define kernel other", "", "no kernel"),
}


if os.uname().machine != "x86_64":
    del GATED["clones"], GATED["flags"]


@pytest.mark.parametrize("name", GATED)
def test_the_gate_refuses(name: str) -> None:
    """What the gate names becomes a legality rule; the sandbox would only say that it died."""
    before, inside, rule = GATED[name]
    text = f'#include "kernel.h"\n{before}\n{DEFINITION} {{ {inside} }}\n'
    built = build(KERNEL, text)

    assert isinstance(built, BuildFailed)
    assert rule in built.signature


CALLS = {
    "fork": "ask(SYS_clone, 17, 0, 0, 0, 0, 0);",
    "memory": "ask(SYS_mmap, 0, 1L << 34, 3, 0x22, -1, 0);",
    "socket": "ask(SYS_socket, 2, 1, 0, 0, 0, 0);",
    "execute": 'ask(SYS_execve, (long)"/bin/sh", 0, 0, 0, 0, 0);',
    "kill": "ask(SYS_kill, -1, 9, 0, 0, 0, 0);",
    "read a file": 'ask(SYS_openat, -100, (long)"/etc/passwd", 0, 0, 0, 0);',
    "unprotect": "ask(SYS_mprotect, (long)a->x & -4096L, 4096, 3, 0, 0, 0);",
    "handle signals": "ask(SYS_rt_sigaction, 31, 0, 0, 8, 0, 0);",
    "write elsewhere": "ask(SYS_write, 2, (long)a->x, 4, 0, 0, 0);",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_system_call_ends_the_process(name: str) -> None:
    """Without the gate, the kernel's filter still stands between a candidate and the machine."""
    assert _verdict(SYSTEM.replace("BODY", CALLS[name])).startswith("system call ")


def test_no_file_is_written(tmp_path: Path) -> None:
    """The verdict names the call, and the file is not there."""
    target = tmp_path / "written"
    body = f'ask(SYS_openat, -100, (long)"{target}", O_CREAT | O_WRONLY, 0600, 0, 0);'

    assert _verdict(SYSTEM.replace("BODY", body)).startswith("system call ")
    assert not target.exists()


def test_code_at_load_time_is_confined(tmp_path: Path) -> None:
    """A constructor runs before the harness's own first line after loading."""
    target = tmp_path / "written"
    text = SYSTEM.replace("BODY", "") + (
        "__attribute__((constructor)) static void early(void) { "
        f'ask(SYS_openat, -100, (long)"{target}", O_CREAT | O_WRONLY, 0600, 0, 0); }}'
    )

    assert _verdict(text).startswith("system call ")
    assert not target.exists()


BODIES = {
    "null": ("*(volatile int *)8 = 1;", "segmentation fault"),
    "trap": ("__builtin_trap();", ""),
    "past the end": ("a->residual[H] = 1;", "segmentation fault past the end of residual"),
    "before": ("a->residual[-1] = 1;", "wrote outside its buffers: around residual"),
    "input": ("((volatile uint16_t *)a->x)[3] = 1;", "wrote to the read-only x"),
    "weight": ("((volatile uint8_t *)a->wo)[3] = 1;", "wrote to the read-only wo"),
    "read past": ("a->residual[0] = a->wo[(long)H * QS];", "past the end of wo"),
    "nothing": ("", "differs by"),
    "not finite": ("for (int i = 0; i < H; i++) a->residual[i] = 0x7fc0;", "not finite"),
    "leave": ("ask(SYS_exit_group, 0, 0, 0, 0, 0, 0);", "ended early"),
    "leave like the runner": ("ask(SYS_exit_group, 40, 0, 0, 0, 0, 0);", "ended early"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_fault_is_named(name: str) -> None:
    """An agent can only mend what the verdict tells it."""
    body, detail = BODIES[name]

    assert detail in _verdict(SYSTEM.replace("BODY", body))


def test_endless_recursion_ends() -> None:
    """The stack has a limit of its own."""
    recurse = """#include "kernel.h"
    static __attribute__((noinline)) int deeper(volatile char *p) {
        volatile char page[4096];
        page[0] = p[0];
        return deeper(page) + page[1];
    }
    void kernel(const struct args *a) { char c = 0; a->residual[0] = deeper(&c); }"""

    assert "segmentation fault" in _verdict(recurse)


def test_an_endless_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the parent's, whatever the process does."""
    monkeypatch.setattr("targets.cpu.check.CALL_LIMIT_S", 0.3)
    text = f'#include "kernel.h"\n{DEFINITION} {{ for (volatile int i = 0;; i++) {{}} }}'

    assert _verdict(text) == "time limit of 0.3 s"


def test_a_remembered_output_is_caught() -> None:
    """The second launch of a fixture has other inputs."""
    replay = (
        HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
        + f"""
    static uint16_t kept[H];
    static int n;
    {DEFINITION} {{
        if (n++ == 0) {{
            honest(a);
            memcpy(kept, a->residual, sizeof kept);
        }}
        memcpy(a->residual, kept, sizeof kept);
    }}"""
    )

    detail = _verdict(replay)
    assert "differs by" in detail
    assert "second launch" in detail


def test_nothing_is_remembered_on_the_stack() -> None:
    """A kernel that finds its last output there could leave out the weights; no gate sees that."""
    remember = (
        HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
        + f"""
    static __attribute__((noinline)) int seen_before(int depth) {{
        volatile int room[4096];
        int seen = room[0] == 0x5eed;
        room[0] = 0x5eed;
        return (depth > 1 && seen_before(depth - 1)) | seen;
    }}
    {DEFINITION} {{
        honest(a);
        a->residual[0] ^= seen_before(30) ? 0x8000 : 0;
    }}"""
    )
    built = build(KERNEL, remember)
    assert isinstance(built, Built)

    (result,) = check(KERNEL, built.artifact, [1])
    assert result.passed, result.detail


def test_the_arm_that_is_to_blame_is_named() -> None:
    """A candidate that crashes on the device must not take the incumbent with it."""
    good = build(KERNEL, HONEST)
    assert isinstance(good, Built)
    wrong = build(KERNEL, canary_wrong(KERNEL, HONEST))
    assert isinstance(wrong, Built)
    crash = _ungated(SYSTEM.replace("BODY", "*(volatile int *)8 = 1;"))
    for bad, reason in ((crash, "segmentation fault"), (wrong.artifact, "differs")):
        failed = measure(
            KERNEL,
            [good.artifact, bad],
            [0, 1],
            group=2,
            launches=2,
            checked=[True, True],
            seed=3,
            limit_s=60,
        )
        assert isinstance(failed, MeasureFailed)
        assert failed.arm == 1
        assert reason in failed.reason


FORGE = """
#include <stdint.h>
#include <time.h>
static __attribute__((noinline)) uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* Makes every recent reading of the clock on the harness's stack ten times younger. */
void kernel(const struct args *a) {
    __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
    honest(a);
    uint64_t end = now(), *word = __builtin_frame_address(0);
    for (word -= 8; word < (uint64_t *)__builtin_frame_address(0) + 96; word++)
        if (*word < end && end - *word < 1000000000u)
            *word = end - (end - *word) / 10;
    __asm__ volatile("" ::: "rbx", "r12", "r13", "r14", "r15", "memory");
}
"""


def test_a_kernel_that_remembers_its_inputs_is_caught() -> None:
    """The inputs of a job recur, and the weights that a launch must read are not read again."""
    remember = (
        HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
        + f"""
    static uint16_t inputs[64][QS], before[64][H], after[64][H];
    static int n;
    {DEFINITION} {{
        for (int i = 0; i < n; i++)
            if (!memcmp(inputs[i], a->x, sizeof inputs[i])
                && !memcmp(before[i], a->residual, sizeof before[i])) {{
                memcpy(a->residual, after[i], sizeof after[i]);
                for (volatile int spin = 0; spin < 100000; spin++) {{}}
                return;
            }}
        memcpy(inputs[n], a->x, sizeof inputs[n]);
        memcpy(before[n], a->residual, sizeof before[n]);
        honest(a);
        memcpy(after[n++], a->residual, sizeof after[0]);
    }}"""
    )
    failed = measure(
        KERNEL,
        [_ungated(HONEST), _ungated(remember)],
        [0, 1] * 4,
        group=2,
        launches=8,
        checked=[True, True],
        seed=3,
        limit_s=60,
    )

    assert isinstance(failed, MeasureFailed)
    assert failed.arm == 1
    assert "remembers" in failed.reason


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names registers of x86-64")
def test_a_forged_clock_gains_nothing() -> None:
    """The harness's readings lie in memory that an artifact can write."""
    forged = HONEST.replace(DEFINITION, "static void honest(const struct args *a)") + FORGE
    measured = measure(
        KERNEL,
        [_ungated(HONEST), _ungated(forged)],
        [0, 1] * 3,
        group=2,
        launches=8,
        checked=[True, True],
        seed=3,
        limit_s=60,
    )

    assert isinstance(measured, Measured)
    honest, cheat = ([x for r in measured.runs if r.arm == i for x in r.launches_s] for i in (0, 1))
    assert min(cheat) > min(honest) / 2


SLOW_THE_OTHER_ARM = """
#include <link.h>
static __attribute__((noinline)) void slow(const struct args *a) {
    honest(a);
    for (volatile int spin = 0; spin < 20000000; spin++) {}
}
void kernel(const struct args *a);
/* Looks through the writable memory of the harness for the table of kernels. */
static int search(struct dl_phdr_info *object, size_t size, void *unused) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
            continue;
        uintptr_t *word = (uintptr_t *)((object->dlpi_addr + part->p_vaddr + 7) & -8ul);
        for (long n = (long)part->p_memsz / 8 - 2; n > 0; n--, word++)
            if (word[1] == (uintptr_t)kernel && word[0])
                *(volatile uintptr_t *)word = (uintptr_t)slow;
    }
    return 1;
}
void kernel(const struct args *a) {
    dl_iterate_phdr(search, 0);
    honest(a);
}
"""


def test_a_kernel_cannot_replace_its_opponent() -> None:
    """A slower incumbent makes any candidate look faster, with true times and right outputs."""
    attack = HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
    failed = measure(
        KERNEL,
        [_ungated(HONEST), _ungated("#define _GNU_SOURCE\n" + attack + SLOW_THE_OTHER_ARM)],
        [1, 0],
        group=2,
        launches=2,
        checked=[True, True],
        seed=3,
        limit_s=60,
    )

    assert isinstance(failed, MeasureFailed)
    assert failed.arm == 1
    assert "segmentation fault" in failed.reason


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names flags of x86-64")
def test_flags_do_not_outlast_a_launch() -> None:
    """Alignment checks that a candidate leaves on would make the other arm fault."""
    leave = HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
    leave += f"{DEFINITION} {{ honest(a); __builtin_ia32_writeeflags_u64(0x40202); }}"
    unaligned = HONEST.replace(DEFINITION, "static void honest(const struct args *a)")
    unaligned += f"""{DEFINITION} {{
        volatile char bytes[12];
        *(volatile long *)(((uintptr_t)bytes + 7 & -8ul) + 1) = 1;
        honest(a);
    }}"""
    measured = measure(
        KERNEL,
        [_ungated(unaligned), _ungated(leave)],
        [1, 0],
        group=2,
        launches=2,
        checked=[True, True],
        seed=3,
        limit_s=60,
    )

    assert isinstance(measured, Measured)


def test_no_address_tells_which_launches_are_looked_at() -> None:
    """An artifact that knew would leave work out of the others."""
    jobs = [_steps(_image(KERNEL, 3), [0, 1, 1, 0] * 2, 2, 4, [True, True]) for _ in range(30)]
    reported = [[(i % 4, s.variant) for i, s in enumerate(steps) if s.report] for steps in jobs]

    assert all(len(set(job)) > 1 for job in reported)
    assert {place for job in reported for place, _ in job} == set(range(4))
    assert {variant for job in reported for _, variant in job} == set(range(7))


def test_diagnostics_do_not_show_a_users_file(tmp_path: Path) -> None:
    """The compiler itself is confined, in case that the gate is passed."""
    if "no Landlock" in isolation():
        pytest.skip("the kernel has no Landlock")
    secret = tmp_path / "secret.h"
    secret.write_text("int swordfish = ;\n", encoding="utf-8")
    built = compile_ungated(KERNEL, f'#include "{secret}"\n')

    assert isinstance(built, BuildFailed)
    assert "swordfish" not in built.diagnostics


def test_a_flood_of_diagnostics_is_cut() -> None:
    """The compiler prints a line of code again for each warning on it."""
    flood = "".join(f"int v{i};" for i in range(12_000)) + f"{'w' * 9000} = 1;"
    built = build(KERNEL, f'#include "kernel.h"\n{DEFINITION} {{ {flood} }}')

    assert isinstance(built, BuildFailed)
    assert len(built.diagnostics) <= MAX_PRINTED
    assert len(built.signature) + len(built.snippet) <= 2 * MAX_SHOWN


WORKER = """
import sys
from pathlib import Path
from targets.cpu.check import check
from targets.gemma4.kernels import kernel
print("ready", flush=True)
check(kernel("sliding_attention_output", "small"), Path(sys.argv[1]).read_bytes(), [1])
"""


def test_a_killed_worker_takes_its_runner_along(tmp_path: Path) -> None:
    """A lost worker of the pool must not leave a hostile process on the node."""
    artifact = tmp_path / "endless.so"
    text = f'#include "kernel.h"\n{DEFINITION} {{ for (volatile int i = 0;; i++) {{}} }}'
    artifact.write_bytes(_ungated(text))
    command = [sys.executable, "-c", WORKER, str(artifact)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as worker:
        assert _wait_for_runner(worker.pid, there=True)
        os.kill(worker.pid, signal.SIGKILL)
    assert _wait_for_runner(worker.pid, there=False)


def _wait_for_runner(parent: int, *, there: bool) -> bool:
    for _ in range(200):
        texts = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                texts.append(path.read_bytes().decode(errors="replace"))
            except OSError:
                continue
        if any(f"\0job\0{parent}\0" in text for text in texts) == there:
            return True
        time.sleep(0.05)
    return False
