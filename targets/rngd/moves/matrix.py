"""A matrix times a vector: every way that the choices know."""

from dataclasses import dataclass
from typing import Final, Literal

from targets.rngd.moves.chain import POWER_OF_TWO, Chain, Step
from targets.rngd.moves.recipe import Recipe
from targets.rngd.moves.writer import Axes, Typed, Writer

Format = Literal["f8", "nvfp4", "mxfp4"]

BLOCK: Final = {"f8": 1, "nvfp4": 16, "mxfp4": 32}
"""Consecutive weights of a row that share a scale."""
TABLE: Final = "values"
_F4_VALUES: Final = (
    "tcl.vector(\n"
    "        [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0,"
    " -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]\n"
    "    )"
)


@dataclass(frozen=True)
class Matrix:
    """Weights of a kernel."""

    name: str
    """Prefix of everything that is made of them."""
    weights: str
    scales: str
    """Of the blocks; "" for f8, whose row scales are a vector like any other."""
    rows: str
    columns: str
    packed: str
    """Axis of a row's bytes; the columns for f8."""
    blocks: str
    """Axis of a row's blocks; the columns for f8."""
    format: Format


@dataclass(frozen=True)
class _Piece:
    """A matrix, or a part of one, ready to be multiplied."""

    weights: str
    scales: str
    rows: Axes
    inner: Axes
    """Axes that the product sums over: columns, or blocks and the place in a block."""


def declare_table(writer: Writer) -> None:
    """Add the table of the f4e2m1 values."""
    writer.let(TABLE, Typed("bf16", (writer.axis("Codes", 16),)), _F4_VALUES)


def product(
    writer: Writer,
    recipe: Recipe,
    matrix: Matrix,
    x: str,
    after: tuple[Step, ...],
    *,
    last: bool = False,
) -> str:
    """Add ``matrix @ x`` and what follows at once; return its name.

    Args:
        writer: of the kernel.
        recipe: how.
        matrix: which.
        x: vector over the columns.
        after: steps on the product, with vectors over the rows or numbers.
        last: whether it is the last matrix to arrive: no other is split along its columns.
    """
    x = _blocked(writer, matrix, x)
    if recipe.tile:
        return _tiled(writer, recipe, matrix, x, after)
    parts = _parts(writer, recipe, matrix) if last else ()
    if not parts:
        scales = _ready(writer, matrix, matrix.scales)
        piece = _piece(writer, matrix, matrix.weights, scales, matrix.rows)
        return _multiplied(writer, recipe, matrix, piece, x, after, matrix.name)
    return _in_parts(writer, recipe, matrix, x, after, parts)


def _blocked(writer: Writer, matrix: Matrix, x: str) -> str:
    if matrix.format == "f8":
        return x
    inner = (matrix.blocks, writer.axis("Block", BLOCK[matrix.format]))
    return writer.reshape(f"{x}_blocks", x, inner)


def _piece(
    writer: Writer, matrix: Matrix, weights: str, scales: str, rows: str, blocks: str = ""
) -> _Piece:
    """Bring weights into the shape and type that a product takes."""
    if matrix.format == "f8":
        return _Piece(weights, "", (rows,), (blocks or matrix.columns,))
    blocks = blocks or matrix.blocks
    size = BLOCK[matrix.format]
    columns = matrix.columns
    if blocks != matrix.blocks:
        columns = writer.axis(f"{blocks}Columns", size * writer.sizes[blocks])
    inner = (blocks, writer.axis("Block", size))
    codes = writer.transmute(f"{weights}_codes", weights, "f4_e2", columns)
    shaped = writer.reshape(f"{weights}_blocks", codes, (rows, *inner))
    return _Piece(shaped, scales, (rows,), inner)


def _ready(writer: Writer, matrix: Matrix, scales: str) -> str:
    """Bring block scales into a form to multiply by; mxfp4 has them as exponents."""
    if matrix.format != "mxfp4":
        return scales
    signed = writer.transmute(f"{scales}_signed", scales, "i8", writer.tensors[scales].axes[-1])
    chain = Chain("integers", (signed,), POWER_OF_TWO)
    return writer.chain(f"{scales}_values", "power_of_two", chain, "bf16")


def _multiplied(
    writer: Writer,
    recipe: Recipe,
    matrix: Matrix,
    piece: _Piece,
    x: str,
    after: tuple[Step, ...],
    name: str,
) -> str:
    if matrix.format == "f8":
        return _multiplied_f8(writer, recipe, piece, x, after, name)
    scaled = (Step("mulf", piece.scales),)
    if recipe.multiply == "pass":
        steps = (*scaled, Step("mulf", x), Step("sum", piece.inner), *after)
        return writer.chain(name, "multiply_rows", Chain("look up", _codes(piece), steps))
    x = _narrow(writer, x)
    if recipe.multiply == "blocks":
        return _in_blocks(writer, piece, x, after, name)
    codes = Chain("look up", _codes(piece), scaled)
    decoded = writer.chain(f"{name}_decoded", "decode", codes, "bf16")
    chain = Chain("contract", (decoded, x), after, piece.rows)
    return writer.chain(name, "multiply_rows", chain)


def _in_blocks(writer: Writer, piece: _Piece, x: str, after: tuple[Step, ...], name: str) -> str:
    decoded = writer.chain(f"{name}_decoded", "decode", Chain("look up", _codes(piece), ()), "bf16")
    to = (*piece.rows, piece.inner[0])
    steps = (Step("mulf", piece.scales), Step("sum", piece.inner[:1]))
    sums = f"{name}_sums" if after else name
    summed = writer.chain(sums, "multiply_blocks", Chain("contract", (decoded, x), steps, to))
    return writer.chain(name, "finish_rows", Chain("fetch", (summed,), after)) if after else summed


def _multiplied_f8(
    writer: Writer, recipe: Recipe, piece: _Piece, x: str, after: tuple[Step, ...], name: str
) -> str:
    if recipe.multiply == "pass":
        steps = (Step("mulf", x), Step("sum", piece.inner), *after)
        return writer.chain(name, "multiply_rows", Chain("fetch", (piece.weights,), steps))
    x = _narrow(writer, x)
    wide = writer.chain(f"{name}_wide", "widen", Chain("fetch", (piece.weights,), ()), "bf16")
    chain = Chain("contract", (wide, x), after, piece.rows)
    return writer.chain(name, "multiply_rows", chain)


def _narrow(writer: Writer, x: str) -> str:
    """Add ``x`` as the dot product engine takes it."""
    if writer.tensors[x].dtype == "bf16":
        return x
    return writer.chain(f"{x}_narrow", "narrow", Chain("fetch", (x,), ()), "bf16")


def _codes(piece: _Piece) -> tuple[str, str]:
    return piece.weights, TABLE


def _tiled(writer: Writer, recipe: Recipe, matrix: Matrix, x: str, after: tuple[Step, ...]) -> str:
    """Go over tiles of rows in a hardware loop; what follows comes after the loop."""
    name = matrix.name
    count = writer.sizes[matrix.rows] // recipe.tile
    tiles = writer.axis(f"{name.title()}Tiles", count)
    rows = writer.axis("TileRows", recipe.tile)
    tiled = {}
    for tensor in filter(None, (matrix.weights, matrix.scales)):
        axes = (tiles, rows, *writer.tensors[tensor].axes[1:])
        tiled[tensor] = writer.reshape(f"{tensor}_tiles", tensor, axes)
    whole = writer.let(
        f"{name}_rows", Typed(writer.width, (tiles, rows)), "tcl.scratchpad()", mutable=True
    )
    with writer.loop(count, recipe.unroll):
        tile = {t: writer.turn(f"{t}_tile", tiled[t], tiles) for t in tiled}
        weights = tile[matrix.weights]
        scales = _ready(writer, matrix, tile.get(matrix.scales, ""))
        piece = _piece(writer, matrix, weights, scales, rows)
        part = _multiplied(writer, recipe, matrix, piece, x, (), f"{name}_part")
        writer.line(f"tcl.index_write({whole}, i, {part}, axis={tiles})")
    if not after:
        return writer.reshape(name, whole, (matrix.rows,))
    flat = writer.reshape(f"{name}_flat", whole, (matrix.rows,))
    return writer.chain(name, f"finish_{name}", Chain("fetch", (flat,), after))


def _parts(writer: Writer, recipe: Recipe, matrix: Matrix) -> tuple[int, ...]:
    """Return the sizes of the parts in blocks, or () for no split."""
    if not recipe.last:
        return ()
    n = writer.sizes[matrix.blocks]
    second = max(1, n // recipe.last)
    return n - second, second


def _in_parts(
    writer: Writer,
    recipe: Recipe,
    matrix: Matrix,
    x: str,
    after: tuple[Step, ...],
    parts: tuple[int, ...],
) -> str:
    """Multiply parts of the columns one after the other, each added to those before it."""
    loaded = matrix.scales and _ready(writer, matrix, writer.shared(matrix.scales))
    x = writer.load(x) if writer.tensors[x].stored else x
    name, first, so_far = matrix.name, 0, ""
    per_block = BLOCK[matrix.format] // 2 or 1
    for at, size in enumerate(parts):
        blocks = writer.axis(f"{name.title()}Part{at}", size)
        packed = blocks if matrix.format == "f8" else f"{blocks}Bytes"
        writer.axis(packed, size * per_block)
        weights = writer.part(
            f"{matrix.weights}_{at}", matrix.weights, matrix.packed, first * per_block, packed
        )
        scales = (
            writer.part(f"{loaded}_{at}", loaded, matrix.blocks, first, blocks) if loaded else ""
        )
        piece = _piece(writer, matrix, weights, scales, matrix.rows, blocks)
        slice_of_x = writer.part(f"{x}_{at}", x, matrix.blocks, first, blocks)
        steps = (Step("addf", so_far),) if so_far else ()
        ends = at == len(parts) - 1
        so_far = _multiplied(
            writer,
            recipe,
            matrix,
            piece,
            slice_of_x,
            (*steps, *after) if ends else steps,
            name if ends else f"{name}_part{at}",
        )
        first += size
    return so_far
