"""What a toolchain printed of a failed build, as far as all toolchains agree."""


def first_error(diagnostics: str) -> str:
    """The first line that says that it is an error, else the first line; "" if there is none."""
    lines = [line for line in diagnostics.splitlines() if line.strip()]
    errors = (line for line in lines if "error" in line.lower())
    return next(errors, lines[0] if lines else "")
