"""Decodes and encodes source files as Python does: a byte order mark, or the comment of PEP 263, names the encoding."""

from __future__ import annotations

import io
import tokenize


def encoding_of(source: bytes) -> str:
    """Returns the name of the encoding of a source file; "utf-8" if the one that it declares is unknown."""
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0]
    except SyntaxError:
        return "utf-8"


def decoded(source: bytes) -> str:
    """Returns the text of a source file. Every line end is a line feed."""
    return source.decode(encoding_of(source), "replace").replace("\r\n", "\n").replace("\r", "\n")


def encoded(text: str) -> bytes:
    """Returns a text as a source file in the encoding that it declares; as UTF-8 if that can't express it."""
    source = text.encode("utf-8", "surrogatepass")
    try:
        return text.encode(encoding_of(source))
    except (UnicodeEncodeError, LookupError):
        return source
