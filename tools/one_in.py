"""A plugin of pytest: of the catalogue and the pages, runs one in so many cases of each test (`--one-in`)."""

from __future__ import annotations

from collections import Counter

import pytest

SAMPLED = ("test_catalogue", "test_pages")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--one-in", type=int, default=1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    one_in: int = config.getoption("--one-in")
    seen: Counter[str] = Counter()
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0]
        sampled = item.path.stem in SAMPLED and "[" in item.nodeid
        (left_out if sampled and seen[test] % one_in else chosen).append(item)
        seen[test] += 1
    items[:] = chosen
    if left_out:
        config.hook.pytest_deselected(items=left_out)
