"""Device files as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from targets.protocol import BuildFailed
from targets.rngd.opt.text import judge, normalize, tokens

DEVICE = """\
/* tiles /* and more */ of rows */
use furiosa_opt_std::prelude::*;
#[device(chip = 1)]
pub fn kernel<'a>(x: &'a Tile) { let c = '"'; let s = "std // no comment"; } // std
"""


def test_a_device_file_is_none_of_the_rules_business() -> None:
    """Comments and texts may hold any word; the library's name ends like the host's."""
    assert judge(DEVICE) is None


@pytest.mark.parametrize(
    "line",
    [
        'use std::fs; fn f() { fs::read("/"); }',
        "use r#std as s;",
        "std /* */ ::process::exit(0)",
        'const X: &[u8] = include_bytes!("/etc/passwd");',
        "unsafe { }",
        "#![no_std]",
        "# /* */ ! [feature(x)]",
        "#[no_mangle] fn main() {}",
        'fn f() { println!("cycles=1"); }',
        'let s = r#"a"b"#; unsafe {}',
        "let c = '\\''; unsafe {}",
        "let c = b'\"'; unsafe {}",
    ],
)
def test_host_code_is_refused_with_its_line(line: str) -> None:
    """It would run in the program that measures it, and could print any reading."""
    fault = judge(f"{DEVICE}{line}\n")

    assert fault is not None
    refusal = fault.refusal(f"{DEVICE}{line}\n")
    assert isinstance(refusal, BuildFailed)
    assert refusal.signature.startswith("rules: host")
    assert refusal.snippet == line


def test_comments_and_spacing_are_no_difference() -> None:
    """All else is."""
    assert normalize("a  /* x /* y */ */ + b // c\n") == normalize("a +\nb")
    assert normalize('"a  b"') != normalize('"a b"')
    assert normalize("x /* open") == "x"


@given(st.text(alphabet="ab/*\"'\\r#\n !", max_size=40))
def test_every_text_has_tokens_with_lines_that_rise(source: str) -> None:
    """Whatever an author writes."""
    lines = [line for line, _ in tokens(source)]

    assert lines == sorted(lines)
    assert all(1 <= line <= source.count("\n") + 1 for line in lines)
