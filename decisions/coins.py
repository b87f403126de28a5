"""Fair coins and secret numbers, derived from the run's secret seed so that audit can redo them."""

import hashlib


def coins(
    secret_seed: str, kernel: str, candidate: int, incumbent: int, start: int, n: int
) -> tuple[bool, ...]:
    """Toss the coins of ``n`` pairs of one comparison.

    Args:
        secret_seed: of the run; agents never see it.
        kernel: name of the kernel.
        candidate: number of the candidate.
        incumbent: number of the best version that it is compared with.
        start: index of the first pair, counted over the whole comparison, void pairs included.
        n: number of coins.

    Returns:
        Per pair, True if the candidate runs first. Any coin depends on its own index alone.
    """
    return tuple(
        bool(_digest(secret_seed, kernel, candidate, incumbent, index)[0] & 1)
        for index in range(start, start + n)
    )


def secret_int(secret_seed: str, *labels: str | int) -> int:
    """Derive an integer in [0, 2**63) from the secret seed and what it is for.

    Args:
        secret_seed: of the run.
        labels: purpose and subject, as in ``("fixture", kernel, candidate)``.
    """
    return int.from_bytes(_digest(secret_seed, "int", *labels)[:8], "big") >> 1


def secret_share(secret_seed: str, *labels: str | int) -> float:
    """Derive a number from 0 to 1 that is as likely to lie in any part as in another as large.

    Args:
        secret_seed: of the run.
        labels: as of `secret_int`.
    """
    return secret_int(secret_seed, *labels) / 2**63


def _digest(*parts: str | int) -> bytes:
    return hashlib.sha256("|".join(str(part) for part in parts).encode()).digest()
