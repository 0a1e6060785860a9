"""A pytest plugin: it runs every test of another project inside `tensorlens.trace()`, and writes down the outcomes.

PYTHONPATH=tests/support python -m pytest -p under_lens --outcomes plain.txt THEIR_TESTS
PYTHONPATH=tests/support python -m pytest -p under_lens --outcomes lens.txt --lens THEIR_TESTS
diff plain.txt lens.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lens", action="store_true", help="run each test inside tensorlens.trace()")
    parser.addoption("--outcomes", help="the file that takes a line for each test")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not item.config.getoption("--lens"):
        return (yield)
    import tensorlens

    with tensorlens.trace():
        return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        _lines.append(f"{report.nodeid} {report.when} {report.outcome}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    path = terminalreporter.config.getoption("--outcomes")
    if path:
        Path(path).write_text("".join(f"{line}\n" for line in sorted(_lines)), "utf-8")


_lines: list[str] = []
