"""Designs for f4e2m1 weights with a scale per 16, in an explorer's order, without foresight."""

from targets.cpu.designs.design import AVX2, VBMI, Design

_BLOCK = {"ROWS": 1, "APART": 1, "STAGGER": 0, "PREFETCH": 0, "LOCALITY": 3}
_VNNI = VBMI | {"avx512_vnni"}

F4_DESIGNS = (
    Design(
        "table",
        "f4_table.c",
        "A table of 256 pairs of floats decodes two weights a lookup, and a scale is applied once "
        "a block.",
        6.0,
        "decoding",
        {"ROWS": 1, "APART": 1, "STAGGER": 0},
    ),
    Design(
        "columns",
        "f4_columns.c",
        "Going column by column keeps a part of x in registers and makes all sums independent, "
        "so no addition waits for another.",
        6.0,
        "memory",
        {"TILE": 64},
        whole=True,
    ),
    Design(
        "shuffle",
        "f4_shuffle.c",
        "A byte shuffle is a table lookup for a whole block of codes at once.",
        25.0,
        "decoding",
        _BLOCK,
        AVX2,
    ),
    Design(
        "bytes",
        "f4_bytes.c",
        "x as 8-bit integers: one instruction multiplies and adds 64 products of bytes.",
        80.0,
        "memory",
        _BLOCK,
        _VNNI,
    ),
    Design(
        "vectors",
        "f4_vectors.c",
        "The compiler's vectors decode several weights at once by moving their bits to where a "
        "float has them.",
        12.0,
        "decoding",
        {**_BLOCK, "LANES": 8},
    ),
    Design(
        "words",
        "f4_words.c",
        "x as 16-bit integers: products are added in pairs, twice as many a step as with floats, "
        "and no precision is lost.",
        40.0,
        "sums",
        _BLOCK,
        AVX2,
    ),
    Design(
        "shared-scale",
        "f4_shared.c",
        "One scale for two blocks halves the work on scales.",
        30.0,
        "decoding",
        _BLOCK,
        AVX2,
    ),
    Design(
        "lookup",
        "f4_lookup.c",
        "A register of sixteen floats is the whole table: one instruction decodes sixteen codes.",
        45.0,
        "decoding",
        _BLOCK,
        VBMI,
    ),
    Design(
        "accumulators",
        "f4_accumulators.c",
        "Eight independent sums let additions overlap, and the scale is applied once a block.",
        4.0,
        "sums",
        {"ROWS": 1, "APART": 1, "STAGGER": 0},
    ),
    Design(
        "word-dots",
        "f4_dot.c",
        "A lookup gives 32 weights as 16-bit integers, and one instruction multiplies them by x "
        "and adds in pairs.",
        60.0,
        "decoding",
        _BLOCK,
        _VNNI,
    ),
    Design(
        "pipelined",
        "f4_pipelined.c",
        "Loading the next block's codes while one is computed hides the loads.",
        30.0,
        "decoding",
        _BLOCK,
        AVX2,
    ),
    Design(
        "byte-planes",
        "f4_planes.c",
        "x as 16-bit integers split into two planes of bytes: four byte products replace four "
        "lookups and shifts.",
        65.0,
        "sums",
        _BLOCK,
        _VNNI,
    ),
    Design(
        "bf16",
        "f4_bf16.c",
        "A lookup gives 32 weights as bf16, and one instruction multiplies them by x and adds in "
        "pairs; x rounded to bf16 is accurate enough.",
        70.0,
        "memory",
        _BLOCK,
        VBMI | {"avx512_bf16"},
    ),
)
