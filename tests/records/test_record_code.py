"""The functions that are written for a type of records do what its class does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from tensorlens.records.model import Access, Failure, State
from tensorlens.records.record_code import in_python, maker


@pytest.mark.parametrize("make", [maker, in_python])
@pytest.mark.parametrize("kind", [Access, State, Failure])
def test_a_made_record_is_one_of_the_class(kind: Any, make: Callable[[Any], Callable[..., object]]) -> None:
    names = [field.name for field in fields(kind)]
    values = [object() for _ in names]
    made = make(kind)(*values)
    assert type(made) is kind
    assert made == kind(*values)
    assert hash(made) == hash(kind(*values))
    assert repr(made) == repr(kind(*values))
    with pytest.raises(FrozenInstanceError):
        setattr(made, names[0], 1)


@pytest.mark.parametrize("make", [maker, in_python])
def test_a_record_is_made_from_all_its_fields(make: Callable[[Any], Callable[..., object]]) -> None:
    for values in ((), (1,), (1, 2, 3)):
        with pytest.raises(TypeError):
            make(Access)(*values)
    with pytest.raises(TypeError):
        make(Access)(1, 2, version=3)
