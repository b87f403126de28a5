import time

import pytest

from targets.cpu.clock import clock_fault, memory_fault
from targets.cpu.diagnostics import failure
from targets.cpu.gate import (
    MAX_SOURCE_BYTES,
    artifact_fault,
    normalize,
    preprocessed_fault,
    source_fault,
)
from targets.cpu.job import Launch, Step
from targets.protocol import TargetError
from targets.sandbox.compiler import compiler

HONEST = '#include "kernel.h"\nvoid kernel(const struct args *a) { a->y[0] = 1; }\n'


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("#include <stdio.h>", "gate: include not allowed"),
        ("#include </etc/passwd>", "gate: include not allowed"),
        ("#inc\\\nlude <unistd.h>", "gate: include not allowed"),
        ("#/* hidden */include <unistd.h>", "gate: include not allowed"),
        ("/* over\nlines */ # include <unistd.h>", "gate: include not allowed"),
        ("%:include <unistd.h>", "gate: include not allowed"),
        ("#define X <unistd.h>\n#include X", "gate: include not allowed"),
        ("#include_next <stdint.h>", "gate: directive not allowed"),
        ('#embed "/etc/passwd"', "gate: directive not allowed"),
        ('#line 1 "other.c"', "gate: directive not allowed"),
        ('# 1 "other.c"', "gate: directive not allowed"),
        ('#if __has_include("/root/.ssh/id_rsa")', "gate: has_include not allowed"),
        ('#pragma GCC optimize("fast-math")', "gate: pragma not allowed"),
        ("#pragma STDC FENV_ACCESS ON", "gate: pragma not allowed"),
        ('void f(void) { asm("nop"); }', "gate: asm not allowed"),
        ('void f(void) { __asm__ volatile("syscall"); }', "gate: asm not allowed"),
        ("__attribute__((constructor)) void f(void) {}", "gate: constructor not allowed"),
        ('__attribute__((__ifunc__("r"))) void f(void);', "gate: ifunc not allowed"),
        ('_Pragma("GCC optimize(3)")', "gate: Pragma not allowed"),
        ('__attribute__((section(".text"))) int x;', "gate: section not allowed"),
        ("void *f(void) { return __builtin_return_address(0); }", "gate: builtin_return_address"),
        ("static __thread int n;", "gate: thread not allowed"),
        ("long f(void) { return *(__seg_fs long *)0; }", "gate: seg_fs not allowed"),
        ("int __attribute__((address_space(257))) *p;", "gate: address_space not allowed"),
        ("long f(void) { return __builtin_arm_rsr64(0); }", "gate: builtin_arm_rsr64 not allowed"),
        ("#if 0\n' /*\n#endif\n#include <unistd.h>\n/* */", "gate: include not allowed"),
        ("char q = '\"'; int f(void) { asm(\"\"); } char r = '\"';", "gate: asm not allowed"),
        ('char *s = "\v"; int f(void) { asm(""); } char *t = "";', "gate: asm not allowed"),
        ('char *s = R"(" /* )";\n#include <unistd.h>\n/* */', "gate: raw string"),
        ("// one line\r#include <unistd.h>", "gate: carriage return in source"),
        ("\ufeff#include <unistd.h>", "gate: byte order mark in source"),
        ("int x;\0", "gate: NUL in source"),
        ("/" * 300_000, "gate: source too large"),
    ],
)
def test_a_source_that_breaks_a_rule_is_refused_by_name(line: str, signature: str) -> None:
    """The signature groups refusals and the snippet becomes a legality rule for the agents."""
    fault = source_fault(HONEST + line + "\n")

    assert fault is not None
    assert fault.signature.startswith(signature)
    assert fault.snippet in HONEST + line.replace("\\\n", "").replace("/* hidden */", " ")


@pytest.mark.parametrize(
    "line",
    [
        "#pragma GCC unroll 8",
        "#pragma GCC ivdep",
        "# include   <immintrin.h> // vectors",
        "/* asm is not allowed, says the task */",
        'const char *s = "asm /* no comment */";',
        '#if defined(__AVX512F__) && 1\n#else\n#error "no"\n#endif',
        "#",
        'char *s = "R", c = \'"\'; // R"',
        "int x;\r\nint y;",
    ],
)
def test_a_source_that_keeps_the_rules_passes(line: str) -> None:
    """A gate that refuses honest work costs designs."""
    assert source_fault(HONEST + line + "\n") is None


def test_a_preprocessed_text_without_own_lines_is_refused() -> None:
    """A compiler that marks lines in another way must not switch the check off."""
    fault = preprocessed_fault('# 1 "/elsewhere/kernel.c"\nasm("nop");\n')

    assert fault is not None
    assert fault.signature == "gate: nothing after preprocessing"


@pytest.mark.parametrize("text", ["/* ", '"\\"', "'\\'", "\\ ", "a"])
def test_no_source_makes_the_gate_slow(text: str) -> None:
    """It runs outside of the sandbox and its limits, in the processes that everything waits for."""
    source = text * (MAX_SOURCE_BYTES // len(text))
    began = time.process_time()
    normalize(source)
    source_fault(source)
    preprocessed_fault(f'# 1 "kernel.c"\n{source}')
    failure(f"{source}\nkernel.c:1:1: error: {source}\n", source)

    assert time.process_time() - began < 5.0


def test_tokens_pasted_by_the_preprocessor_are_seen() -> None:
    """Only the candidate's own lines count: system headers hold assembly of their own."""
    header = '# 1 "/usr/include/x.h" 1\nasm("nop");\n# 2 "kernel.c" 2\n'

    assert preprocessed_fault(f'# 1 "kernel.c"\n{header}int x;\n') is None
    fault = preprocessed_fault(f'# 1 "kernel.c"\n{header}void f(void) {{ __asm__("nop"); }}\n')
    assert fault is not None
    assert fault.signature == "gate: asm not allowed"


def test_a_damaged_artifact_is_refused() -> None:
    """The reader of the linker's output must not raise on anything."""
    for data in (b"", b"\x7fELF\x02\x01" + bytes(9), b"\x7fELF\x02\x01" + b"\xff" * 200):
        fault = artifact_fault(data)
        assert fault is not None
        assert fault.signature == "gate: artifact unreadable"


def test_normalizing_removes_comments_and_spacing_only() -> None:
    """Two sources with equal normal forms are duplicates, so nothing else may be lost."""
    spaced = '#define N 4  // four\nint  a = 1; /* x */\n\n  char *s = "a  /* b */";\n'

    assert normalize(spaced) == '#define N 4\nint a = 1; char *s = "a  /* b */";'
    assert normalize(spaced.replace("a  /*", "a /*")) != normalize(spaced)
    assert normalize("int a;\n#if N\nint b;") == "int a;\n#if N\nint b;"


def test_errors_of_one_class_have_one_signature() -> None:
    """Names, numbers and places differ between candidates; the class of mistake does not."""
    first = failure("kernel.c:2:5: error: 'foo' undeclared here\n", "int x;\n  y = foo;\n")
    second = failure("kernel.c:1:9: error: 'bar2' undeclared here\n", "z = bar2;\n")

    assert first.signature == second.signature == "error: '_' undeclared here"
    assert first.snippet == "y = foo;"


def test_a_failed_link_is_classed_by_what_is_missing() -> None:
    """The compiler's own last word only says that its linker failed."""
    printed = (
        "/usr/bin/ld: undefined reference to `foo'\ncollect2: error: ld returned 1 exit status\n"
    )

    assert failure(printed, "").signature == "link: undefined reference to '_'"


def _launches(claimed_s: float, true_s: float, n: int = 20) -> list[Launch]:
    made, at = [], 100.0
    for _ in range(n):
        end = at + true_s
        made.append(Launch(at, at + 1e-6, at + 1e-6 + claimed_s, at, end, "", None, None))
        at = end + 5e-5
    return made


STEPS = [Step(0, 0, 0, 0, 0)] * 20


@pytest.mark.parametrize(("claimed_s", "true_s"), [(0.0002, 0.002), (0.003, 0.03)])
def test_a_clock_that_claims_a_tenth_is_caught(claimed_s: float, true_s: float) -> None:
    """An artifact shares the harness's memory; the parent's own stamps are out of its reach."""
    forged = _launches(claimed_s, true_s)

    fault = clock_fault(STEPS, forged, 0, weights=0, outputs=1000)
    assert fault is not None
    assert fault.arm == 0


def test_a_beginning_is_not_taken_for_later_than_its_announcement() -> None:
    """The announcement is out of an artifact's reach; the reading of the clock after it is not."""
    moved = Launch(100.0, 100.002, 100.005, 100.0, 100.005, "", None, None)

    assert moved.claimed_s == pytest.approx(0.005, rel=0.01)


def test_a_quarter_taken_off_every_launch_is_caught() -> None:
    """A small forgery would be accepted as a gain."""
    fault = clock_fault(STEPS, _launches(0.003, 0.004), 0, weights=0, outputs=1000)
    assert fault is not None
    assert fault.arm == 0


def test_a_rate_that_no_memory_has_is_caught() -> None:
    """The weights are cold, so a launch cannot be shorter than reading them."""
    fault = clock_fault(STEPS, _launches(1e-5, 1e-5), 0, weights=10**8, outputs=0)
    assert fault is not None
    assert "bytes of weights" in fault.reason


def test_an_honest_clock_passes_on_a_busy_machine() -> None:
    """Some stamps are late when the machine is busy; that is no candidate's fault."""
    honest = _launches(0.001, 0.00102)
    honest[3] = Launch(*(*_times(honest[3])[:4], honest[3].seen_end_s + 0.1, "", None, None))

    assert clock_fault(STEPS, honest, 0, weights=1000, outputs=1000) is None


def test_a_machine_too_busy_to_tell_is_not_the_candidates_fault() -> None:
    """The job fails and can be asked for again; no candidate is refused for a neighbour's load."""
    mixed = _launches(0.0002, 0.00021, 6) + _launches(0.0002, 0.005, 14)

    fault = clock_fault(STEPS, mixed, 0, weights=1000, outputs=1000)
    assert fault is not None
    assert fault.arm is None


def test_an_arm_is_not_blamed_for_one_quick_report() -> None:
    """Noise slows some launches; leaving work out slows all that cannot leave it out."""
    steps = [Step(0, 0, 0, 0, 0, report=i % 5 == 4) for i in range(20)]
    busy = [
        x for i in range(4) for x in _launches(0.001, 0.00102, 4) + _launches(0.002, 0.00202, 1)
    ]
    quick = [*busy[:19], *_launches(0.0012, 0.00122, 1)]

    fault = memory_fault(steps, busy, 0)
    assert fault is not None
    assert fault.arm == 0
    assert memory_fault(steps, quick, 0) is None


def _times(x: Launch) -> tuple[float, float, float, float, float]:
    return x.announced_s, x.begun_s, x.ended_s, x.seen_start_s, x.seen_end_s


def test_no_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer reads this text first."""
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)

    with pytest.raises(TargetError, match="install gcc or clang"):
        compiler()


def test_another_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay works there; building does not."""
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    with pytest.raises(TargetError, match="needs Linux"):
        compiler()
