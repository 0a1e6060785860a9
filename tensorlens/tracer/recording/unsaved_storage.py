"""Describes memory behind a read of `.data` that no node has saved. `_fast_path.c` makes these objects, too."""

from __future__ import annotations

from typing import ClassVar, NamedTuple


class _Fields(NamedTuple):
    op: str  # that made the alias
    site: int  # of that operation
    tensor: int  # id of the tensor that it was made of
    start: int  # address


class UnsavedStorage(_Fields):
    """Memory that an alias, which PyTorch made, can write past its version counter, and that no node has saved.

    Most aliases are gone before a node saves their memory, so no more is read of it until then.
    """

    __slots__ = ()
    may_be_saved: ClassVar[bool] = False  # by a node
    external: ClassVar[bool] = False  # others than PyTorch can write there
