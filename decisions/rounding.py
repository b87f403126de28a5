"""Figures as the record has them: the same on every machine that derives them again."""


def rounded(value: float, digits: int = 9) -> float:
    """Return ``value`` to so many significant digits.

    C libraries differ in the last bits of exp, log and tanh, and audit compares without a
    tolerance.
    """
    return float(f"{value:.{digits}g}")
