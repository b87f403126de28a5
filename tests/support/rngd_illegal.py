"""Small sources that are no kernels, and the class of the verdict under either toolchain."""

from typing import Final

from tests.support.rngd import HEAD, RESULT, SIGNATURE, body

_RETURN: Final = "return contract(w, x, [N])"


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
        "hints = tcl.context(layout={tcl.Chip: tcl.Broadcast, tcl.Cluster: M})",
        "y = contract(w, x, [N], compiler_hints=hints)",
        "return y",
    ),
    "divided among chips": body(
        "y = contract(w, x, [N], compiler_hints=tcl.context(layout={tcl.Chip: N}))", "return y"
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
    + SIGNATURE.replace("def project", "def inner")
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
VERDICTS: Final = {
    "no return annotation": ("trace: TypeError 8a77519e", "trace: TypeError 3c43138d"),
    "parameter without annotation": ("trace: TypeError eabdfaee", "trace: TypeError 11eb680d"),
    "unknown dtype": ("trace: TypeError 86896bc7", "trace: TypeError 86896bc7"),
    "lower-case axis": ("trace: TypeError d1023230", "trace: TypeError 59db1787"),
    "output axis of no input": ("trace: TypeError 5c2a4516", "trace: DifferentTypes 42b8dc8b"),
    "missing binding": ("trace: ValueError 998269c6", "trace: ValueError 998269c6"),
    "extra binding": ("trace: ValueError 998269c6", "trace: ValueError 998269c6"),
    "other bindings": ("rules: bindings ad7f5ca7", "rules: bindings ad7f5ca7"),
    "other dtype of a parameter": (
        "trace: DifferentTypes 60914e1c",
        "trace: DifferentTypes 60914e1c",
    ),
    "other result": ("trace: DifferentTypes 75d7d072", "trace: DifferentTypes 75d7d072"),
    "another name": ("trace: LookupError 8f1f0168", "trace: LookupError 8f1f0168"),
    "mixed dtypes contracted": ("trace: DifferentTypes 60914e1c", "trace: DifferentTypes 60914e1c"),
    "operation outside a tensor operation": (
        "trace: RuntimeError 26615c53",
        "trace: RuntimeError 26615c53",
    ),
    "reduction over an axis that is not there": (
        "trace: TypeInferenceError 57a8fa33",
        "trace: TypeInferenceError 57a8fa33",
    ),
    "undefined name": ("trace: NameError 9229441e", "trace: NameError 9229441e"),
    "slice without its axis": (
        "trace: NoAnnotationFound 6974aec0",
        "trace: NoAnnotationFound 6974aec0",
    ),
    "reshape of another volume": ("evaluate: refused b4d11fda", ""),
    "two axes on one line": (
        "trace: CallSiteAssignmentNotFound 78d18c67",
        "trace: SyntaxError f011fe57",
    ),
    "unknown hint": ("evaluate: refused 315819b9", ""),
    "hint on an axis that is not there": ("evaluate: refused d4329876", ""),
    "divided among chips": ("rules: layout 50a0126d", "rules: layout 50a0126d"),
    "false assertion": ("rules: bindings f5e55c0e", "rules: bindings f5e55c0e"),
    "unused parameter": ("evaluate: refused 62dc1d0d", ""),
    "slice out of range": ("evaluate: refused 6f8d51f1", ""),
    "four-bit contraction": ("evaluate: refused 52d32924", ""),
    "compiler configuration": ("rules: construct b8121be7", "rules: construct b8121be7"),
    "dump": ("rules: construct 5bf5b497", "rules: construct 5bf5b497"),
    "kernel in a kernel": ("rules: construct 247506c2", "rules: construct 247506c2"),
    "collective": ("trace: DifferentTypes fac9fee1", "trace: DifferentTypes fac9fee1"),
    "64 bits": ("rules: dtype b18fb9d7", "rules: dtype b18fb9d7"),
    "empty axis": ("rules: axis 4ecbfbca", "rules: axis 4ecbfbca"),
    "endless axis": ("rules: axis 4ecbfbca", "rules: axis 4ecbfbca"),
    "no Python": ("trace: SyntaxError c49482a4", "trace: SyntaxError c49482a4"),
    "nothing": ("trace: LookupError 8f1f0168", "trace: LookupError 8f1f0168"),
}
"""Under the newer and the older toolchain: stage, kind, and the begin of the SHA-256 of the whole
signature, whose wording is the vendor's. "": the older one cannot tell."""
