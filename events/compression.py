"""How the bytes of a blob are compressed, and what a reader lets itself be told about them."""

import zstandard

PLAIN = 0
ZSTD = 1
LEVEL = 1
"""Measured on prompts, sources and samples: a few percent larger than level 3, half its time."""
MAX_WINDOW_BYTES = 1 << 23
"""Memory that a compressed blob may ask for besides its own size; ours ask for far less."""


class Compression:
    """Compresses and decompresses blobs, one at a time."""

    def __init__(self) -> None:
        self._squeeze = zstandard.ZstdCompressor(level=LEVEL, write_content_size=False).compress
        self._unsqueeze = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).decompress

    def pack(self, data: bytes) -> tuple[int, bytes]:
        """Return the kind of compression and the bytes to store, which are never more."""
        packed = self._squeeze(data)
        return (ZSTD, packed) if len(packed) < len(data) else (PLAIN, data)

    def unpack(self, kind: int, packed: bytes, n_raw: int) -> bytes:
        """Return the raw bytes, of which there must be ``n_raw``; no more are made room for.

        Raises:
            ValueError: they cannot be had; the message says why.
        """
        if kind == PLAIN:
            data = packed
        elif kind == ZSTD:
            data = self._decompressed(packed, n_raw)
        else:
            raise ValueError(f"unknown compression {kind} (written by a newer version?)")
        if len(data) != n_raw:
            raise ValueError(f"it has {len(data)} bytes and should have {n_raw}")
        return data

    def _decompressed(self, packed: bytes, n_raw: int) -> bytes:
        try:
            # A size within the compressed bytes would be believed over the limit given here.
            if zstandard.frame_content_size(packed) not in (-1, n_raw):
                raise ValueError("two different sizes are given for it")
            return self._unsqueeze(packed, max_output_size=n_raw, allow_extra_data=False)
        except zstandard.ZstdError as e:
            raise ValueError(f"it cannot be decompressed ({e})") from e
