"""The functions that are written for a type of records do what its class does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

from tensorlens.records.model import Access, Failure, State
from tensorlens.records.record_code import maker


@pytest.mark.parametrize("kind", [Access, State, Failure])
def test_a_made_record_is_one_of_the_class(kind: type) -> None:
    values = [object() for _ in fields(kind)]
    made = maker(kind)(*values)
    assert type(made) is kind
    assert made == kind(*values)
    assert hash(made) == hash(kind(*values))
    assert repr(made) == repr(kind(*values))
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(kind)[0].name, 1)
