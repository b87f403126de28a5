"""Texts of agents, models and artifacts as a terminal or a page may show them."""


def visible(text: str) -> str:
    """Write characters that hide, reorder or command as their escapes; keep tabs and line feeds."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\t\n" else _escape(ord(c)) for c in text)


def one_line(text: str) -> str:
    """The same on one line, so that no text can pass for a line of ours."""
    return visible(" ".join(text.split()))


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
