"""The NPU's language as text: what parses to what, what a syntax error says, how it is printed."""

import time
from importlib.resources import files
from pathlib import Path
from typing import Final

import pytest

from sim.npu.compiler import compile_source
from sim.npu.diagnostics import Diagnostic
from sim.npu.kernels import SIGNATURES
from sim.npu.parse import MAX_CHARACTERS, parse
from sim.npu.printing import normalize, print_kernel
from sim.npu.program import Position, Program
from sim.npu.syntax import KernelText
from sim.npu.toolchain import TOOLCHAINS, V1_0

EXPERTS: Final = Path(__file__).parents[1] / "data" / "npu"
KERNELS: Final = files("targets.sim") / "kernels"

EVERYTHING: Final = """\
kernel k
axis H = 3840
axis B = H / 16
hbm x: bf16[H, B] inout
place p = cluster H:2, slices H:16 copy:2 idle:8
place q = cluster one, slices H:64
for t in 0..4 over H buffers 2 {
  load a, b from x, x[3] to p block 512
  for u in 0..2 over B {
    c = main a roll H | lookup f8e4m3 keep | switch gather H | contract t scale s | mul self \
| mul -1.5 | fma 1/3840 1e-6 | add c | exp | sum H | div 3 | reduce H | commit dm f32
  }
}
d = sub a | switch broadcast | commit vrf
e = main a | commit trf f8e4m3 pieces 2 lanes 8
store c to x[o[1]]
"""


def parsed(source: str) -> KernelText:
    kernel = parse("k.npu", source)
    assert isinstance(kernel, KernelText), str(kernel)
    return kernel


def message(source: str) -> str:
    diagnostic = parse("k.npu", source)
    assert isinstance(diagnostic, Diagnostic)
    assert diagnostic.code == "E-SYNTAX"
    return str(diagnostic)


def test_the_layout_of_the_printer_is_one() -> None:
    """A text in the printer's own layout is printed as it stands: every construct is in it."""
    assert print_kernel(parsed(EVERYTHING)) == EVERYTHING


def test_white_space_and_comments_do_not_matter() -> None:
    """A whole kernel may stand in one line."""
    squeezed = " ".join(EVERYTHING.split())
    commented = EVERYTHING.replace("\n", " # a comment } | =\r\n\t")
    assert parsed(squeezed) == parsed(commented) == parsed(EVERYTHING)


def test_equal_tokens_have_one_normal_form() -> None:
    """Duplicates are found by it, and a learned text is found in it."""
    assert (
        normalize("a=main b|mul  1/2 # half\n|commit vrf") == "a = main b | mul 1 / 2 | commit vrf"
    )
    assert normalize(EVERYTHING) == normalize(print_kernel(parsed(EVERYTHING)))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "k.npu:1:1: E-SYNTAX: unexpected end; expected one of {kernel}"),
        (
            "kernel k\nload a from x\nto",
            "k.npu:3:3: E-SYNTAX: unexpected end; expected one of {a name}",
        ),
        ("kernel for", "k.npu:1:8: E-SYNTAX: unexpected `for`; expected one of {a name}"),
        (
            "kernel k y = all x",
            "k.npu:1:14: E-SYNTAX: unexpected `all`; expected one of {main, sub}",
        ),
        (
            "kernel k place p = cluster idle:2",
            "unexpected `idle`; expected one of {an axis, copy, one}",
        ),
        (
            "kernel k axis H = 1234567890",
            "unexpected `1234567890`; expected one of {a name, an integer}",
        ),
        ("kernel k axis H = -3", "unexpected `-3`; expected one of {a name, an integer}"),
        ("kernel k axis \0", r"unexpected `\x00`; expected one of {a name}"),
        ("kernel k y = main x | mul 1e9999 | commit vrf", "unexpected `1`; expected one of"),
        ("kernel k for t in 1..4 over H { }", "unexpected `1`; expected one of {0..N}"),
    ],
)
def test_a_syntax_error_says_what_could_stand_there(source: str, said: str) -> None:
    """The author needs the place, what was found and the choices."""
    assert said in message(source)


def test_words_of_a_parts_list_are_no_keywords() -> None:
    """``out`` is a good name for a tensor."""
    assert len(parsed("kernel k out = main weight | commit vrf").items) == 1


@pytest.mark.parametrize(
    "source",
    [
        "x" * 1_000_000,
        "kernel k " + "#" * (MAX_CHARACTERS + 1),
        "kernel k " + "for t in 0..2 over H {" * 2_900,
        "kernel k axis H = 8 " + "for t in 0..2 over H {" * 2_500 + "}" * 2_500,
        "kernel k " + "y = main x | commit vrf " * 2_700,
        "kernel k y = main x" + " | exp" * 10_000 + " | commit vrf",
        "kernel k axis " + "a" * 60_000 + " = 1",
        "kernel k axis H = " + "9" * 60_000,
        "\0" * 60_000,
        "\ud800",
    ],
    ids=len,
)
def test_hostile_texts_get_a_diagnostic_soon(source: str) -> None:
    """The front end reads anything: long, deep and broken texts cost seconds at most."""
    begin = time.process_time()
    answer = compile_source("k.npu", source, SIGNATURES["sliding_attention_output"], V1_0)
    assert isinstance(answer, Diagnostic)
    assert time.process_time() - begin < 5
    str(answer).encode()


def test_deep_nesting_is_printed() -> None:
    """Sources are brought to normal form before they are checked."""
    deep = parsed("kernel k " + "for t in 0..2 over H {" * 2_000 + "}" * 2_000)
    assert print_kernel(deep).count("for t in 0..2 over H {") == 2_000


@pytest.mark.parametrize("version", TOOLCHAINS)
@pytest.mark.parametrize("kernel", SIGNATURES)
def test_the_sources_of_the_target_compile_in_all_versions(kernel: str, version: str) -> None:
    """A campaign's own sources survive a change of the toolchain."""
    signature, toolchain = SIGNATURES[kernel], TOOLCHAINS[version]
    baseline = (KERNELS / f"{kernel}_baseline.npu").read_text()
    bound = (KERNELS / f"{kernel}_bound.npu").read_text()
    expert = (EXPERTS / f"{kernel}_expert.npu").read_text()
    for source, wanted in (
        (baseline, signature),
        (expert, signature),
        (bound, signature.load_only()),
    ):
        answer = compile_source(kernel, source, wanted, toolchain)
        assert isinstance(answer, Program), str(answer)


def test_a_statement_knows_its_place() -> None:
    """Profiles and faults speak of places in the source."""
    source = (KERNELS / "sliding_attention_output_bound.npu").read_text()
    signature = SIGNATURES["sliding_attention_output"].load_only()
    answer = compile_source("k", source, signature, V1_0)
    assert isinstance(answer, Program)
    lines = source.splitlines()
    assert [s.position for s in answer.body] == [
        Position(lines.index("load w from wo to grid") + 1, 1)
    ]
