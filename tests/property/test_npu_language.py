"""Laws of the NPU's language: printing loses nothing, and no text breaks the front end."""

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.npu.compiler import compile_source
from sim.npu.diagnostics import Diagnostic
from sim.npu.parse import parse
from sim.npu.printing import normalize, print_kernel
from sim.npu.program import Program
from sim.npu.syntax import KernelText
from sim.npu.toolchain import V1_0
from tests.support.npu_programs import HEADER, SIGNATURE, Sample, compiled, programs

WORDS: Final = tuple(
    [
        "kernel",
        "axis",
        "hbm",
        "place",
        "cluster",
        "slices",
        "one",
        "copy",
        "idle",
        "for",
        "in",
        "over",
        "buffers",
        "load",
        "from",
        "to",
        "block",
        "store\n",
        "",
        "",
        "",
        "main",
        "sub",
        "roll",
        "lookup",
        "keep",
        "switch",
        "broadcast",
        "gather",
        "contract",
        "scale",
        "mul",
        "fma",
        "add",
        "max",
        "exp",
        "sum",
        "div\n",
        "",
        "",
        "",
        "reduce",
        "self",
        "commit",
        "dm",
        "trf",
        "vrf",
        "pieces",
        "lanes",
        "bf16",
        "f32",
        "f8e4m3",
        "x",
        "w",
        "s",
        "H",
        "B",
        "R",
        "all",
        "rows",
        "t0",
        "t0a",
        "0..2",
        "0",
        "1",
        "3\n",
        "",
        "",
        "",
        "256",
        "1e-6",
        "1e999",
        "=",
        ":",
        "|",
        ",",
        "[",
        "]",
        "{",
        "}",
        "/",
        "-",
        "\x00",
        "é",
        "#",
    ]
)


@settings(max_examples=40)
@given(sample=programs())
def test_printing_and_parsing_gives_the_same_tree(sample: Sample) -> None:
    """A catalogue changes trees and prints them; nothing may be lost on the way."""
    kernel = parse("k", sample.source)
    assert isinstance(kernel, KernelText)
    printed = print_kernel(kernel)
    assert parse("k", printed) == kernel
    assert normalize(printed) == normalize(sample.source)
    assert isinstance(compiled(printed), Program)


@settings(max_examples=150)
@given(text=st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("latin-1")))
def test_any_text_gets_a_diagnostic(text: str) -> None:
    """Garbage is refused with a place in it; it never raises."""
    answer = compile_source("k", text, SIGNATURE, V1_0)
    assert isinstance(answer, Diagnostic)
    assert 1 <= answer.position.line <= text.count("\n") + 1


@settings(max_examples=200)
@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
def test_any_words_of_the_language_get_an_answer(words: list[str]) -> None:
    """Texts that look like the language reach the rules; no rule raises."""
    answer = compile_source("k", HEADER + " ".join(words), SIGNATURE, V1_0)
    assert isinstance(answer, Program | Diagnostic)


@settings(max_examples=100)
@given(sample=programs(max_idioms=3), data=st.data())
def test_a_legal_program_with_one_word_changed_gets_an_answer(
    sample: Sample, data: st.DataObject
) -> None:
    """Most candidates are a legal program with a slip: the rules meet every combination."""
    words = normalize(sample.source).split(" ")
    i = data.draw(st.integers(0, len(words) - 1))
    words[i] = data.draw(st.sampled_from((*WORDS, *words)))
    answer = compile_source("k", " ".join(words), SIGNATURE, V1_0)
    if isinstance(answer, Diagnostic):
        assert answer.snippet in " ".join(words)
