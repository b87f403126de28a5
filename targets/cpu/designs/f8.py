"""Designs for f8e4m3 weights with a scale per row, in an explorer's order, without foresight."""

from targets.cpu.designs.design import AVX2, AVX512, VBMI, Design

_BLOCK = {"ROWS": 1, "APART": 1, "STAGGER": 0, "PREFETCH": 0, "LOCALITY": 3}
_SCALAR = {"ROWS": 1, "APART": 1, "STAGGER": 0, "ACC": 1}

F8_DESIGNS = (
    Design(
        "table",
        "f8_table.c",
        "A table of 256 floats replaces the decoding by shifts and branches.",
        2.0,
        "decoding",
        _SCALAR,
    ),
    Design(
        "columns",
        "f8_columns.c",
        "Going column by column keeps a part of x in registers and makes all sums independent, "
        "so no addition waits for another.",
        2.5,
        "memory",
        {"TILE": 64},
        whole=True,
    ),
    Design(
        "vectors",
        "f8_vectors.c",
        "The compiler's vectors decode several weights at once by moving their bits to where a "
        "float has them.",
        8.0,
        "decoding",
        {**_BLOCK, "LANES": 8},
    ),
    Design(
        "fixed-point",
        "f8_fixed.c",
        "Weights and x as 8-bit integers make the sums cheap integer ones that vectorize.",
        10.0,
        "sums",
        {"ROWS": 1, "APART": 1, "STAGGER": 0},
    ),
    Design(
        "f16c",
        "f8_f16c.c",
        "Shifted by seven bits an f8 is a half-precision number, and the processor converts eight "
        "of those at once.",
        14.0,
        "decoding",
        _BLOCK,
        AVX2,
    ),
    Design(
        "accumulators",
        "f8_accumulators.c",
        "Several independent sums let additions overlap, and the decoding needs no branch.",
        4.0,
        "sums",
        {"ROWS": 1, "APART": 1, "STAGGER": 0, "ACC": 4},
    ),
    Design(
        "truncated-sums",
        "f8_truncated.c",
        "Partial sums kept as bf16 need half the room, so twice as many fit into registers.",
        6.0,
        "sums",
        {"ROWS": 1, "APART": 1, "STAGGER": 0, "ACC": 8},
    ),
    Design(
        "half",
        "f8_half.c",
        "The conversion from half precision works on sixteen weights at once in wide registers.",
        20.0,
        "decoding",
        _BLOCK,
        AVX512,
    ),
    Design(
        "gather",
        "f8_gather.c",
        "A gather looks eight weights up in the table of 256 floats with one instruction.",
        6.0,
        "decoding",
        {"ROWS": 1, "APART": 1, "STAGGER": 0},
        AVX2,
    ),
    Design(
        "bf16-shift",
        "f8_bf16_shift.c",
        "Shifted by four bits an f8 is a bf16, and one instruction multiplies 32 pairs of those.",
        25.0,
        "memory",
        _BLOCK,
        AVX512 | {"avx512_bf16"},
    ),
    Design(
        "unrolled",
        "f8_unrolled.c",
        "Three vector steps at a time, so that the loop's own instructions do not count.",
        10.0,
        "decoding",
        {"ROWS": 1, "APART": 1, "STAGGER": 0, "LANES": 8, "UNROLL": 3},
    ),
    Design(
        "byte-tables",
        "f8_bytes.c",
        "Two byte lookups in registers decode 64 weights at once, subnormal ones included.",
        25.0,
        "decoding",
        _BLOCK,
        VBMI,
    ),
    Design(
        "bf16-split",
        "f8_bf16_split.c",
        "Byte lookups decode to bf16 for the pairwise products; x as two bf16 loses no precision.",
        30.0,
        "sums",
        _BLOCK,
        VBMI | {"avx512_bf16"},
    ),
    Design(
        "bf16",
        "f8_bf16.c",
        "Byte lookups decode to bf16 for the pairwise products, and x rounded to bf16 is accurate "
        "enough for the tolerance.",
        33.0,
        "memory",
        _BLOCK,
        VBMI | {"avx512_bf16"},
    ),
)
