"""A cell of many lines, such as the names of thousands of parameters, is divided at once, not once for each line."""

import pytest
from rich.text import Text

from tensorlens.render.tables import folded


@pytest.mark.parametrize("words", [1, 20, 2_000])
def test_a_line_is_divided_once_however_long_it_is(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    divisions, divide = 0, Text.divide

    def counted(self: Text, offsets: object) -> object:
        nonlocal divisions
        divisions += 1
        return divide(self, offsets)  # type: ignore[arg-type]

    monkeypatch.setattr(Text, "divide", counted)
    text = " ".join(f"layer{number}" for number in range(words))
    lines = folded(Text(text, "bold"), 40, 2)
    assert divisions == 1
    assert " ".join(line.plain.strip() for line in lines) == text
    assert max(map(len, lines)) <= 40
    assert all(line.plain.startswith("  ") for line in lines[1:])
