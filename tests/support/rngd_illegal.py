"""Small sources that are no kernels, with the class of the verdict under either toolchain."""

from typing import Final, NamedTuple

from tests.support.rngd import HEAD, RESULT, SIGNATURE, body

_RETURN = "return contract(w, x, [N])"


class Illegal(NamedTuple):
    """A source that must be refused."""

    source: str


def _instead(old: str, new: str, text: str = SIGNATURE) -> str:
    assert old in text
    return HEAD + text.replace(old, new) + RESULT


ILLEGAL: Final = {
    "no return annotation": _instead(" -> tcl.Tensor[tcl.bf16, [N]]", ""),
    "parameter without annotation": _instead("x: tcl.Tensor[tcl.bf16, [K]]", "x"),
    "unknown dtype": _instead("tcl.bf16, [K]", "tcl.f9, [K]"),
    "lower-case axis": _instead("[K]]", "[k]]"),
    "output axis of no input": _instead(
        "-> tcl.Tensor[tcl.bf16, [N]]", "-> tcl.Tensor[tcl.bf16, [M]]"
    ),
    "missing binding": _instead('"N": 4096, ', ""),
    "extra binding": _instead('"N": 4096', '"N": 4096, "M": 2'),
    "other bindings": _instead("4096", "256"),
    "other dtype of a parameter": _instead("tcl.bf16, [K]", "tcl.f32, [K]"),
    "other result": _instead("-> tcl.Tensor[tcl.bf16, [N]]", "-> tcl.Tensor[tcl.f32, [N]]"),
    "another name": _instead("def project", "def other"),
    "mixed dtypes contracted": body(
        "z: tcl.Tensor[tcl.f8_e4, [K]] = tcl.full(1.0)", "y = contract(w, z, [N])", "return y"
    ),
    "operation outside a tensor operation": body("y = operation.mulf(x, 2.0)", _RETURN),
    "reduction over an axis that is not there": HEAD
    + "@tcl.tensor_operation\ndef total(x, axes):\n    return operation.reduce(x, axes=axes)\n\n\n"
    + SIGNATURE
    + "    M = tcl.Axis(4)\n    z = total(x, [M])\n"
    + RESULT,
    "undefined name": body("y = contract(weights, x, [N])", "return y"),
    "slice without its axis": body("z = tcl.slice(x, K, 0)", "y = contract(w, x, [N])", "return y"),
    "reshape of another volume": body(
        "M = tcl.Axis(7)", "z = tcl.reshape(x, to=[M])", "y = contract(w, x, [N])", "return y"
    ),
    "two axes on one line": body(
        "A, B = tcl.Axis(2), tcl.Axis(2048)",
        "v = tcl.reshape(w, to=[A, B, K])",
        "u = contract(v, x, [A, B])",
        "y = tcl.reshape(u, to=[N])",
        "return y",
    ),
    "unknown hint": body(
        "y = contract(w, x, [N], compiler_hints=tcl.context(heuristic_hint={'no_such': 1}))",
        "return y",
    ),
    "hint on an axis that is not there": body(
        "M = tcl.Axis(2)",
        "y = contract(w, x, [N], compiler_hints=tcl.context(layout={tcl.Chip: N, tcl.Cluster: M}))",
        "return y",
    ),
    "false assertion": body(
        "tcl.static_assert(N.size == K.size)", "y = contract(w, x, [N])", "return y"
    ),
    "unused parameter": body("y: tcl.Tensor[tcl.bf16, [N]] = tcl.full(1.0)", "return y"),
    "slice out of range": body(
        "M = tcl.Axis(8)",
        "z = tcl.slice(x, K, 3839, output_axis=M)",
        "y = contract(w, x, [N])",
        "return y",
    ),
    "four-bit contraction": body(
        "w4: tcl.Tensor[tcl.f4_e2, [N, K]] = tcl.full(1.0)",
        "x4: tcl.Tensor[tcl.f4_e2, [K]] = tcl.full(1.0)",
        "y = contract(w4, x4, [N])",
        "return y",
    ),
    "compiler configuration": _instead(
        "strict=True", 'strict=True, config={"dma_throughput_per_pe": 17000}'
    ),
    "dump": body("y = contract(w, x, [N])", "tcl.dump(y, name='y')", "return y"),
    "kernel in a kernel": HEAD
    + "@tcl.kernel\ndef inner(w: tcl.Tensor[tcl.bf16, [N, K]], x: tcl.Tensor[tcl.bf16, [K]]) -> tcl.Tensor[tcl.bf16, [N]]:\n"
    + RESULT
    + "\n\n"
    + SIGNATURE
    + "    y = inner(w, x)\n    return y\n",
    "collective": body("z = contract(w, x, [N])", "y = tcl.all_reduce(z, N)", "return y"),
    "64 bits": body(
        "z: tcl.Tensor[tcl.f64, [N]] = tcl.full(1.0)", "y = contract(w, x, [N])", "return y"
    ),
    "empty axis": body("M = tcl.Axis(0)", "y = contract(w, x, [N])", "return y"),
    "endless axis": body(
        "M = tcl.Axis(10**18)",
        "z: tcl.Tensor[tcl.bf16, [M]] = tcl.full(1.0)",
        "y = contract(w, x, [N])",
        "return y",
    ),
    "no Python": "def project(:\n",
    "nothing": "",
}
