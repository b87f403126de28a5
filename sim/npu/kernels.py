"""The three decode kernels of Gemma-4-12B as the NPU takes them."""

from typing import Final

from sim.npu.signature import Argument, Signature


def _signature(kernel: str, *arguments: Argument) -> Signature:
    results = tuple(a.name for a in arguments if a.part == "out")
    return Signature(kernel, arguments, results)


SIGNATURES: Final = {
    signature.kernel: signature
    for signature in (
        _signature(
            "sliding_project_qkv",
            Argument("x", "bf16", (3840,), "in"),
            Argument("w_rms", "bf16", (3840,), "in"),
            Argument("wq", "f8e4m3", (16, 256, 3840), "weight"),
            Argument("wk", "f8e4m3", (8, 256, 3840), "weight"),
            Argument("wv", "f8e4m3", (8, 256, 3840), "weight"),
            Argument("sq", "bf16", (16, 256), "in"),
            Argument("sk", "bf16", (8, 256), "in"),
            Argument("sv", "bf16", (8, 256), "in"),
            Argument("q_rms", "bf16", (256,), "in"),
            Argument("k_rms", "bf16", (256,), "in"),
            Argument("cos", "bf16", (32768, 256), "in"),
            Argument("sin", "bf16", (32768, 256), "in"),
            Argument("offsets", "i64", (2,), "in"),
            Argument("q_out", "bf16", (16, 256), "out"),
            Argument("k_cache", "bf16", (1024, 8, 256), "inout"),
            Argument("v_cache", "bf16", (1024, 8, 256), "inout"),
        ),
        _signature(
            "sliding_attention_output",
            Argument("x", "bf16", (4096,), "in"),
            Argument("wo", "f8e4m3", (3840, 4096), "weight"),
            Argument("so", "bf16", (3840,), "in"),
            Argument("w_post", "bf16", (3840,), "in"),
            Argument("residual", "bf16", (3840,), "inout"),
        ),
        _signature(
            "decoder_feedforward",
            Argument("residual", "bf16", (3840,), "inout"),
            Argument("w_pre", "bf16", (3840,), "in"),
            Argument("w_post", "bf16", (3840,), "in"),
            Argument("w_up", "f4e2m1", (15360, 3840), "weight"),
            Argument("w_gate", "f4e2m1", (15360, 3840), "weight"),
            Argument("w_down", "f4e2m1", (3840, 15360), "weight"),
            Argument("s_up", "f8e4m3", (15360, 240), "weight"),
            Argument("s_gate", "f8e4m3", (15360, 240), "weight"),
            Argument("s_down", "f8e4m3", (3840, 960), "weight"),
            Argument("globals", "f32", (3,), "in"),
            Argument("layer_scalar", "bf16", (1,), "in"),
        ),
    )
}
"""By kernel."""
