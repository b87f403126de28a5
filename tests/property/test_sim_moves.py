"""Laws of the moves: they hold for every kernel in the language, not for three of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.npu.check.program import check
from sim.npu.diagnostics import IllegalError
from sim.npu.faults import faults
from sim.npu.interpret import meaning
from sim.npu.kernels import SIGNATURES
from sim.npu.parse import parse
from sim.npu.printing import normalize, print_kernel
from sim.npu.program import Program
from sim.npu.signature import Signature
from sim.npu.syntax import KernelText
from sim.npu.toolchain import V1_0
from targets.edits import edits
from targets.sim.moves.change import Change
from targets.sim.moves.designs import Design, built, designs
from targets.sim.moves.registry import MOVES
from targets.sim.moves.settle import settled
from tests.support.npu_kernels import kernel_source
from tests.support.npu_programs import SIGNATURE, Sample, programs

KEEP_VALUES = (
    "tiles",
    "buffers",
    "unloop",
    "fission",
    "hoist",
    "whole loads",
    "fuse loops",
    "interchange",
    "enloop",
    "merge loads",
    "merge all",
    "split loads",
    "block",
    "order",
    "all loads",
    "lanes",
    "keep",
)
"""Moves that change when and how data moves, and nothing that is computed."""


def read(name: str, source: str) -> KernelText:
    tree = parse(name, source)
    assert isinstance(tree, KernelText), tree
    return tree


def compiled(tree: KernelText, signature: Signature) -> Program | None:
    try:
        return check(tree, signature, V1_0)
    except IllegalError:
        return None


def results(program: Program) -> dict[str, str]:
    """Return the keys of all outputs: equal keys, equal values in every launch."""
    return {tensor.name: node.key for tensor, node in meaning(program).outputs}


@st.composite
def changed(draw: st.DrawFn, kernel: KernelText, moves: tuple[str, ...]) -> KernelText:
    """Draw a change by one of some moves, or the kernel itself where there is none."""
    found = list(MOVES[draw(st.sampled_from(moves))](kernel))
    change: Change | None = draw(st.sampled_from(found)) if found else None
    return settled(change.make()) if change else kernel


@settings(max_examples=30, deadline=None)
@given(st.data(), programs())
def test_every_change_of_any_program_is_legal_or_refused(
    data: st.DataObject, given: Sample
) -> None:
    """Whatever a search makes, the compiler has an answer to it, and so has the next move."""
    tree = read("random", given.source)
    for _ in range(3):
        tree = data.draw(changed(tree, tuple(MOVES)))
        source = print_kernel(tree)
        assert read("random", source) == tree
        if compiled(tree, SIGNATURE) is None:
            return


@settings(max_examples=10, deadline=None)
@given(st.data(), st.sampled_from(sorted(SIGNATURES)))
def test_sequences_of_changes_of_a_kernel_never_break_a_move(
    data: st.DataObject, kernel: str
) -> None:
    """A search goes on from what it made; every move must take what every other one leaves."""
    tree = read(kernel, kernel_source(kernel, "baseline"))
    for _ in range(4):
        after = data.draw(changed(tree, tuple(MOVES)))
        tree = after if compiled(after, SIGNATURES[kernel]) else tree

    assert compiled(tree, SIGNATURES[kernel])


@settings(max_examples=30, deadline=None)
@given(st.data(), programs())
def test_what_only_moves_data_keeps_the_values(data: st.DataObject, given: Sample) -> None:
    """Such a change needs no check on the device: its meaning is the same, by the same key."""
    tree = data.draw(changed(read("random", given.source), KEEP_VALUES))
    program = compiled(tree, SIGNATURE)

    if program and not faults(given.program):
        assert results(program) == results(given.program)


@settings(max_examples=10, deadline=None)
@given(st.data(), st.sampled_from(sorted(SIGNATURES)))
def test_edits_make_the_change_and_keep_the_rest_as_it_is_written(
    data: st.DataObject, kernel: str
) -> None:
    """Each is found at exactly one place, in what the one before has left."""
    before = kernel_source(kernel, "baseline")
    after = print_kernel(data.draw(changed(read(kernel, before), tuple(MOVES))))

    source = before
    for edit in edits(before, after, normalize):
        assert source.count(edit.search) == 1
        source = source.replace(edit.search, edit.replace)
    assert normalize(source) == normalize(after)


@settings(max_examples=12, deadline=None)
@given(programs())
def test_the_changes_of_a_program_have_names_of_their_own(given: Sample) -> None:
    """A name stands for one change in the list of what was tried: two must not share it."""
    tree = read("random", given.source)
    for move in MOVES.values():
        made: dict[str, KernelText] = {}
        for change in move(tree):
            kernel = settled(change.make())
            assert made.setdefault(change.name, kernel) == kernel, change.name


@settings(max_examples=12, deadline=None)
@given(programs())
def test_what_is_settled_stays_as_it_is(given: Sample) -> None:
    """A consequence drawn twice would be another change."""
    once = settled(read("random", given.source))

    assert settled(once) == once


@settings(max_examples=10, deadline=None)
@given(st.data(), st.sampled_from(sorted(SIGNATURES)), st.sampled_from(tuple(designs(0))))
def test_a_design_takes_every_version_of_a_kernel(
    data: st.DataObject, kernel: str, design: Design
) -> None:
    """Whoever wrote the best version, a design of it is text that the compiler can judge."""
    tree = read(kernel, kernel_source(kernel, data.draw(st.sampled_from(("baseline", "expert")))))
    for _ in range(3):
        after = data.draw(changed(tree, tuple(MOVES)))
        tree = after if compiled(after, SIGNATURES[kernel]) else tree

    source = print_kernel(built(design, tree, V1_0))
    assert print_kernel(read(kernel, source)) == source
