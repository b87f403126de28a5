"""A toolchain's fingerprint, as the record compares it."""

import hashlib
import json
from collections.abc import Mapping


def toolchain_digest(fingerprint: Mapping[str, str]) -> str:
    """Return the SHA-256, hex, of a fingerprint in canonical JSON: equal means comparable."""
    text = json.dumps(dict(fingerprint), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
