"""Code that is in no file, as in a notebook, at a prompt or in a doctest, has its text and its places in the report."""

import doctest
import linecache
from typing import Any

import pytest
import torch

import tensorlens
from tensorlens.records.report import Report

CELLS = (
    "def forward(x):\n    kept = x.exp()\n    return kept\n",
    "y = forward(x)\ny.add_(1)\n",
    "try:\n    y.sum().backward()\nexcept RuntimeError:\n    pass\n",
)


@pytest.fixture
def forget() -> Any:
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


def places(report: Report) -> list[tuple[str, int, str]]:
    """Returns (file, line, source of the line) of each label of the first finding."""
    spans = [label.span for label in report.diagnostics[0].labels]
    return [(s.file, s.line, report.trace.sources[s.file].splitlines()[s.line - 1].strip()) for s in spans]


@pytest.mark.parametrize(
    "name", ["/tmp/ipykernel_1/{}.py", "<ipython-input-{}-abc>", "<python-input-{}>", "<doctest page[{}]>"]
)
def test_each_cell_is_a_source(name: str, forget: Any) -> None:
    names = [name.format(number) for number in range(len(CELLS))]
    space: dict[str, Any] = {"x": torch.ones(3, requires_grad=True)}
    with tensorlens.trace() as lens:
        for cell, text in zip(names, CELLS, strict=True):
            linecache.cache[cell] = (len(text), None, text.splitlines(keepends=True), cell)
            exec(compile(text, cell, "exec"), space)
    report = lens.report()
    assert {cell: report.trace.sources[cell] for cell in names} == dict(zip(names, CELLS, strict=True))
    assert places(report) == [
        (names[1], 2, "y.add_(1)"),
        (names[0], 2, "kept = x.exp()"),
        (names[2], 2, "y.sum().backward()"),
    ]


def test_code_that_a_library_generates_is_not_the_users(forget: Any) -> None:
    name, text = "<attrs generated init Point>", "def init(x):\n    return x * 2\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    with tensorlens.trace() as lens:
        space["init"](torch.ones(2))
    assert {site.span.file for site in lens.trace().sites} == {__file__}


def test_examples_of_a_doctest() -> None:
    examples = """
    >>> x = torch.ones(3, requires_grad=True)
    >>> y = x.exp()
    >>> _ = y.add_(1)
    >>> y.sum().backward()  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    RuntimeError: modified
    """
    test = doctest.DocTestParser().get_doctest(examples, {"torch": torch}, "page", None, None)
    with tensorlens.trace() as lens:
        assert doctest.DocTestRunner().run(test).failed == 0
    assert places(lens.report()) == [
        ("<doctest page[2]>", 1, "_ = y.add_(1)"),
        ("<doctest page[1]>", 1, "y = x.exp()"),
        ("<doctest page[3]>", 1, "y.sum().backward()  # doctest: +IGNORE_EXCEPTION_DETAIL"),
    ]
