"""What of a source cannot matter."""

import io
import tokenize


def normalize(source: str) -> str:
    """Return a source without comments and spacing, or as it is where it is no Python."""
    kept = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL):
                continue
            blank = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
            kept.append(f"{tokenize.tok_name[token.type]}\n" if blank else f"{token.string} ")
    except (tokenize.TokenError, SyntaxError, ValueError):
        return source
    return "".join(kept)
