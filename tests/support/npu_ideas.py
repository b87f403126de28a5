"""The ideas in the expert kernels, each as the change of the text that takes it back."""

UNDO: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "sliding_project_qkv": {
        "both clusters": (
            ("cluster copy:2", "cluster one"),
            ("cluster G:2, slices G:8 D:32", "cluster one, slices G:16 D:16"),
            ("cluster N:2, slices N:4 D:64", "cluster one, slices N:8 D:32"),
        ),
        "all slices": (
            ("copy:8 idle:32", "copy:8 idle:16"),
            ("G:8 D:32", "G:8 D:16"),
            ("N:4 D:64", "N:4 D:32"),
        ),
        "runs of 256 bytes": ((" block 256", ""),),
        "all lanes": (("lanes 8", "lanes 1"),),
        "x in pieces instead of decoded weights": (
            ("f8e4m3 pieces 2", "bf16"),
            ("w | contract", "w | lookup bf16 keep | contract"),
        ),
        "copies of x from HBM and from the ring": (("copy:8 idle:32", "copy:32 idle:8"),),
        "x before weights": (
            ("load kw from wk to krows block 256\n", ""),
            ("load x0, n0", "load kw from wk to krows block 256\nload x0, n0"),
        ),
    },
    "sliding_attention_output": {
        "both clusters": (
            ("cluster H:2, slices H:16 Q:16", "cluster one, slices H:16 Q:16"),
            ("cluster copy:2", "cluster one"),
        ),
        "all slices": (
            ("H:16 Q:16", "H:8 Q:16"),
            ("idle:16 Q:16", "idle:8 Q:16"),
            ("H:16 idle:16", "H:16 idle:8"),
        ),
        "runs of 256 bytes": (
            ("H:16 Q:16", "H:32 Q:8"),
            ("idle:16 Q:16", "idle:32 Q:8"),
        ),
        "all lanes": (("lanes 8", "lanes 1"),),
        "x in pieces instead of decoded weights": (
            ("f8e4m3 pieces 2", "bf16"),
            ("w | contract", "w | lookup bf16 keep | contract"),
        ),
        "x around the ring": (
            ("slices idle:16 Q:16", "slices copy:16 Q:16"),
            (" | switch broadcast", ""),
        ),
        "loads ahead of passes": (("buffers 3", "buffers 1"),),
        "three tiles": (("0..3", "0..1"),),
    },
    "decoder_feedforward": {
        "long runs": (
            (
                "load gw from w_gate to up\n",
                "for t in 0..2 over L buffers 2 { load gw from w_gate to up }\n",
            ),
        ),
        "runs of 256 bytes for down": ((" block 512", ""),),
        "down cut in two": (
            ("H:128 L:2", "H:64 L:4"),
            ("copy:8 idle:16 L:2", "copy:8 idle:8 L:4"),
            (" block 512", ""),
        ),
        "tables kept": ((" keep", ""),),
        "all lanes": (("lanes 8", "lanes 4"),),
        "copies of x from HBM and from the ring": (
            ("copy:8 idle:32", "copy:256"),
            ("main xn | switch broadcast", "main xn"),
        ),
        "down in three tiles": (("0..3 over H buffers 3", "0..1 over H buffers 1"),),
        "down's loads ahead of passes": (("0..3 over H buffers 3", "0..3 over H buffers 1"),),
    },
}


def undo(source: str, changes: tuple[tuple[str, str], ...]) -> str:
    """Return ``source`` without an idea."""
    for old, new in changes:
        assert old in source, f"the kernel does not contain {old!r}"
        source = source.replace(old, new)
    return source
