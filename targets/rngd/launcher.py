"""Run by the toolchain's own interpreter, confined: launches kernels on the processor.

It lives as long as it is asked, since importing the runtime takes seconds. Every message, either
way, is a length of 8 bytes (little endian), so many bytes of JSON, and the arrays that the JSON
lists, one after the other.

Asked ``{"ticket": ANY, "kernel": NAME, "text": TEXT, "arrays": [[DTYPE, SHAPE], ...],
"back": [INDEX, ...]}``, it launches the kernel on the arrays and answers
``{"ticket": ANY, "arrays": [[DTYPE, SHAPE], ...]}``: what the kernel returned, then those of its
arguments that ``back`` numbers. If it cannot, it answers ``{"error": TEXT}`` and ends: the runtime
may be in any state.
"""

import json
import os
import sys
from collections.abc import Sequence
from math import prod
from typing import Any, BinaryIO

import torch
from furiosa.tcl import Kernel
from furiosa.torch import TclModule

DTYPES = {
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f8_e4": torch.float8_e4m3fn,
    "i32": torch.int32,
    "u8": torch.uint8,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_ERROR = 2000


def main(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    send(answers, {"ready": True})
    while head := asked.read(8):
        ask = json.loads(asked.read(int.from_bytes(head, "little")))
        arrays = [array(asked, dtype, shape) for dtype, shape in ask["arrays"]]
        try:
            returned = TclModule(Kernel(ask["kernel"], dsl=ask["text"]))(*arrays)
        except BaseException as e:  # noqa: BLE001 a panic of the runtime is no Exception
            send(answers, {"error": f"{type(e).__name__}: {e}"[:MAX_ERROR]})
            return
        made = [*returned, *(arrays[i] for i in ask["back"])]
        listed = [[NAMES.get(each.dtype), list(each.shape)] for each in made]
        send(answers, {"ticket": ask["ticket"], "arrays": listed}, made)


def array(file: BinaryIO, dtype: str, shape: Sequence[int]) -> Any:
    """Read a tensor."""
    data = bytearray(prod(shape) * DTYPES[dtype].itemsize)
    view = memoryview(data)
    while view and (n := file.readinto(view)):  # type: ignore[attr-defined]
        view = view[n:]
    return torch.frombuffer(data, dtype=DTYPES[dtype]).reshape(shape)


def send(file: BinaryIO, about: object, arrays: Sequence[Any] = ()) -> None:
    """Write a message."""
    head = json.dumps(about).encode()
    file.write(len(head).to_bytes(8, "little") + head)
    for each in arrays:
        file.write(each.contiguous().view(torch.uint8).numpy())
    file.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # the runtime prints
        main(sys.stdin.buffer, answers)
