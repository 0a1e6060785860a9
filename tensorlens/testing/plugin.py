"""Adds `--tensorlens` and the fixture `lens` to pytest.

pytest imports this module in every run. It imports nothing else of the package until an option or a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tensorlens.testing.lens_fixture import Lens

FAILING, EXPLAINING = "fail", "explain"
MARKER = (
    "tensorlens(allow=[], reference=False): allow findings with these codes; with reference=True, run the test a "
    "second time and compare its gradients"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tensorlens", "what autograd did (tensorlens)")
    group.addoption(
        "--tensorlens",
        action="store_const",
        const=FAILING,
        default="",
        help="record each test, explain failures, and fail tests whose gradients are wrong without an error",
    )
    group.addoption(  # no value of `--tensorlens`: that would take the path in `--tensorlens tests/`
        "--tensorlens=explain",
        dest="tensorlens",
        action="store_const",
        const=EXPLAINING,
        default="",
        help="record each test, and only explain failures",
    )
    group.addoption(
        "--tensorlens-reference",
        action="store_true",
        help="also run each test a second time, with copies of what autograd saves, and compare all gradients",
    )
    group.addoption("--tensorlens-html", metavar="DIR", help="also write a page for each failing test to DIR")
    parser.addini("tensorlens_ignore", "codes of findings that fail no test", type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    mode = config.getoption("tensorlens")
    if mode or config.getoption("tensorlens_reference") or config.getoption("tensorlens_html"):
        from tensorlens.testing.recorded_tests import RecordedTests

        config.pluginmanager.register(RecordedTests(config, mode or FAILING), "tensorlens-recording")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.hasplugin("tensorlens-recording") and any(map(uses_lens, items)):
        from tensorlens.testing.recorded_tests import RecordedTests

        config.pluginmanager.register(RecordedTests(config, ""), "tensorlens-recording")


def uses_lens(item: pytest.Item) -> bool:
    """Returns whether a test uses the fixture `lens` of this module, not another one with its name."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = getattr(info, "name2fixturedefs", {}).get("lens", ())
    return bool(definitions) and getattr(definitions[-1].func, "__module__", "") == __name__


@pytest.fixture
def lens(request: pytest.FixtureRequest) -> Lens:
    """Finds what autograd did in this test, and makes assertions about gradients and memory."""
    from tensorlens.testing.lens_fixture import Lens

    return Lens(request.node)
