"""Query, key and value: three matrices, a norm for each head, rotation, and the caches."""

from typing import Final

from targets.rngd.moves.chain import Chain, Step
from targets.rngd.moves.kernels.norms import input_norm, inverse_size
from targets.rngd.moves.matrix import Format, Matrix, declare_table, product
from targets.rngd.moves.recipe import Recipe
from targets.rngd.moves.writer import Writer

_ROWS: Final = {"q": "QS", "k": "PS", "v": "PS"}
_HALF: Final = 2


def project_qkv(writer: Writer, recipe: Recipe) -> str:
    """Write the body of sliding_project_qkv in either format; return the result's name."""
    block: Format = "f8" if writer.tensors["wq"].dtype == "f8_e4" else "mxfp4"
    if block != "f8":
        declare_table(writer)
    xn = input_norm(writer, writer.shared("x"), "w_rms", "H")
    cosine, sine = (_row(writer, name) for name in ("cos", "sin"))
    q = _turned(writer, _head(writer, recipe, "q", block, xn), "q", cosine, sine)
    k = _turned(writer, _head(writer, recipe, "k", block, xn), "k", cosine, sine)
    v = _head(writer, recipe, "v", block, xn)
    _store(writer, k, "k")
    _store(writer, v, "v")
    return writer.reshape("q_out", q, ("QS",))


def _row(writer: Writer, name: str) -> str:
    """Add the row of a rotation table."""
    row = writer.gather(f"{name}_row", name, "rope_row", "E")
    return writer.reshape(f"{name}_here", row, ("DS",))


def _matrix(name: str, block: Format) -> Matrix:
    if block == "f8":
        return Matrix(name, f"w{name}", "", _ROWS[name], "H", "H", "H", block)
    return Matrix(name, f"w{name}", f"s{name}", _ROWS[name], "H", "HP", "HB", block)


def _head(writer: Writer, recipe: Recipe, name: str, block: Format, xn: str) -> str:
    """Add a projection, every head normalized; v in bf16."""
    row_scale = (Step("mulf", f"s{name}"),) if block == "f8" else ()
    inside = row_scale if recipe.scales == "inside" else ()
    flat = product(writer, recipe, _matrix(name, block), xn, inside, last=name == "v")
    if row_scale and recipe.scales == "after":
        flat = writer.chain(f"{name}_scaled", "multiply", Chain("fetch", (flat,), row_scale))
    width = writer.sizes["DS"]
    rows = writer.sizes[_ROWS[name]]
    axes = (writer.axis(f"{'Q' if name == 'q' else 'P'}Heads", rows // width), "DS")
    heads = writer.reshape(f"{name}_heads", flat, axes)
    scales = ""
    if row_scale and recipe.scales == "norm":
        scales = writer.shared(writer.reshape(f"s{name}_heads", f"s{name}", axes))
    inverse = inverse_size(writer, f"{name}_inverse", heads, "DS", scales=scales)
    steps = (
        *((Step("mulf", scales),) if scales else ()),
        Step("mulf", inverse),
        *(() if name == "v" else (Step("mulf", f"{name}_rms"),)),
    )
    chain = Chain("fetch", (heads,), steps)
    return writer.chain(f"{name}_normed", "normalize_head", chain, "bf16" if name == "v" else None)


def _turned(writer: Writer, x: str, name: str, cosine: str, sine: str) -> str:
    """Add every head rotated, in bf16."""
    heads = writer.tensors[x].axes[0]
    halves = (writer.axis("Halves", _HALF), writer.axis("Half", writer.sizes["DS"] // _HALF))
    split = writer.reshape(f"{name}_halves", x, (heads, *halves))
    low = writer.element(f"{name}_low", split, "Halves", 0)
    high = writer.element(f"{name}_high", split, "Halves", 1)
    halved = writer.tensors[split]
    pair = writer.let(f"{name}_pair", halved, f"tcl.concat([{high}, {low}])")
    swapped = writer.reshape(f"{name}_swapped", pair, (heads, "DS"))
    across = Chain("fetch", (swapped,), (Step("mulf", sine),))
    other = writer.chain(f"{name}_across", "multiply", across)
    along = Chain("fetch", (x,), (Step("mulf", cosine), Step("addf", other)))
    return writer.chain(f"{name}_turned", "turn", along, "bf16")


def _store(writer: Writer, heads: str, name: str) -> None:
    """Write the heads into the row of a cache."""
    row = writer.reshape(f"{name}_new", heads, ("N", "PS"))
    cache = f"{name}_cache"
    writer.tensors[f"{name}_updated"] = writer.tensors[cache]
    writer.line(f"{name}_updated = tcl.scatter({row}, cache_row, TS, init={cache})")
    writer.line(f"{cache}.copy_({name}_updated)")
