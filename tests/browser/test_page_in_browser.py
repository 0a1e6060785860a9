"""The page in a browser: it draws, obeys keys, walks through every moment without a problem, and loads nothing.

The browser is Chromium, driven by Playwright's Python package. Where one of them is missing, these tests are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from catalogue.scoring import SCRIPTS
from support.rank_traces import ranks, report_of
from support.recording import traced
from support.warm import Warm

from tensorlens.diagnostics import report_on
from tensorlens.records.model import Trace
from tensorlens.render import RenderOptions, render
from tensorlens.render.page.ranks_page import ranks_to_html

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the package playwright is not installed: pip install -e '.[dev]'"
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this computer")


def overwritten() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w.exp()
    z = y.detach()
    z.add_(1.0)
    y.sum().backward()


def scaled() -> None:
    scale = torch.tensor([3.0])
    (torch.ones(1, requires_grad=True) * scale).sum().backward()
    print(scale)


def trained() -> None:
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.ones(3, 2)).sum().backward()
        optimizer.step()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


class Shown:
    """A page that is open in the browser, with what it asked of the network and what went wrong."""

    def __init__(self, browser: Any, file: Path, fragment: str = "", **options: Any) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page = browser.new_context(**options).new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.goto(f"{file.as_uri()}{fragment}")
        if options.get("java_script_enabled", True):
            self.page.wait_for_selector("html.drawn", state="attached")

    def text(self, selector: str) -> str:
        found: str = self.page.inner_text(selector)
        return found

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    @property
    def moment(self) -> int:
        return int(self.page.input_value(".time input"))

    def finish(self) -> None:
        """Closes the page; it must have asked for itself alone, without an error."""
        self.page.context.close()
        assert len(self.requests) == 1, self.requests
        assert self.errors == []


def page_of(trace: Trace, folder: Path) -> Path:
    file = folder / "report.html"
    file.write_text(render(report_on(trace), "html", RenderOptions()), encoding="utf-8")
    return file


@pytest.mark.parametrize("program", [overwritten, trained])
@pytest.mark.parametrize("width", [360, 2560])
def test_every_moment_of_a_page_holds_what_always_holds(browser: Any, tmp_path: Path, program: Any, width: int) -> None:
    shown = Shown(browser, page_of(traced(program), tmp_path), "#selftest", viewport={"width": width, "height": 800})
    assert shown.text("#selftest").splitlines()[0].endswith(", 0 problems"), shown.text("#selftest")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    shown.finish()


def test_the_page_opens_at_the_finding_and_its_labels_lead_to_their_lines(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path))
    assert "overwrote" in shown.text(".finding h1")
    assert shown.text(".line.current code").strip() == "z.add_(1.0)"
    shown.page.click(".labels .saved a")
    assert shown.text(".line.current code").strip() == "y = w.exp()"
    shown.press("f")
    assert shown.text(".line.current code").strip() == "z.add_(1.0)"
    shown.finish()


def test_keys_go_through_time(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(trained), tmp_path), "#moment=0")
    shown.press("ArrowRight")
    assert shown.moment == 1
    shown.press("ArrowLeft")
    assert shown.moment == 0
    steps = shown.page.locator(".line.ran", has_text="optimizer.step()")
    steps.locator("button.number").click()
    first = shown.moment
    assert "iteration 1" in shown.text(".where")
    shown.press("}")
    assert shown.moment > first
    assert "iteration 2" in shown.text(".where")
    shown.press("{")
    assert "iteration 1" in shown.text(".where")
    shown.press("Shift+ArrowRight")
    assert shown.text(".line.current code").strip() == "optimizer.zero_grad()"
    shown.finish()


def test_writes_of_the_selected_memory_are_found_by_a_key(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path), "#moment=0")
    shown.page.click(".table .chip:has-text('y')")
    shown.press("]")
    assert shown.text(".line.current code").strip() == "z.add_(1.0)"
    shown.finish()


def test_the_graph_shows_the_way_from_the_selected_tensor(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path), "#moment=0")
    shown.page.click(".table .chip:has-text('w')")
    assert shown.page.locator(".row.node.reached").count() == 2  # exp, sum
    assert shown.page.locator(".row.cut.reached").count() == 1  # detach
    assert shown.page.locator(".row.leaf").inner_text().startswith("w")
    path = shown.text(".path")
    assert path.startswith("The path from w leads to the backward pass at ")
    assert path.endswith("(the result of detach() has no graph).")
    shown.finish()


def test_turns_of_a_loop_are_folded_and_a_key_unfolds_them(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(trained), tmp_path))
    folds = shown.page.locator(".fold")
    assert folds.evaluate_all("all => all.map((each) => each.ariaExpanded)") == ["false", "false", "true"]
    assert "iteration 1: 2 nodes: freed" in folds.first.inner_text()
    assert shown.page.locator(".row.node").count() == 2
    folds.first.focus()
    shown.press("Enter")
    assert shown.page.locator(".row.node").count() == 4
    assert shown.page.evaluate("document.activeElement.ariaExpanded") == "true"
    shown.press("ArrowDown")
    assert "AddmmBackward0" in shown.page.evaluate("document.activeElement.ariaLabel")
    shown.finish()


def test_a_long_turn_is_folded_by_modules(browser: Any, tmp_path: Path) -> None:
    def deep() -> None:
        model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()) for _ in range(20)))
        model(torch.ones(2)).sum().backward()

    shown = Shown(browser, page_of(traced(deep), tmp_path))
    assert shown.page.locator(".row.node").count() < 25
    fold = shown.page.locator(".fold:has-text(', from model[0][0] on')")
    fold.focus()
    shown.press("Enter")
    assert "model[0][0]" in shown.text(".row.node >> nth=0")
    shown.finish()


def test_a_recorded_call_names_its_inputs_without_grad(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(scaled), tmp_path))
    assert shown.text(".row .end") == "× scale"
    shown.page.click(".table .chip:has-text('scale')")
    assert shown.text(".path") == "scale does not require grad: no path begins there."
    shown.finish()


def test_lanes_are_reached_by_keys(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path), "#moment=0")
    items = shown.page.locator(".lanes [data-key]")
    assert shown.page.locator(".lanes [tabindex='0']").count() == 1
    assert all(items.evaluate_all("all => all.map((each) => each.ariaLabel || each.innerText)"))
    items.first.focus()
    for _ in range(items.count()):
        if shown.page.evaluate("document.activeElement.classList.contains('tick')"):
            break
        shown.press("ArrowDown")
    shown.press("Enter")
    assert shown.text(".line.current code").strip() == "z.add_(1.0)"
    assert "write, v1" in shown.page.evaluate("document.activeElement.ariaLabel")  # it keeps the focus
    shown.finish()


def test_saved_edges_lead_from_the_graph_to_the_lanes(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path))
    pins = shown.page.locator("[data-pin]")
    assert shown.page.locator(".saved-edges path").count() == pins.count() == 1
    assert shown.page.locator(".saved-edges .selected").count() == 1
    shown.finish()


def test_the_current_line_says_what_shares_memory_with_the_selection(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path))
    assert "z #2 v1 shares memory with y" in " ".join(shown.text(".selection").split())
    shown.finish()


def test_the_address_keeps_the_moment_and_the_selection(browser: Any, tmp_path: Path) -> None:
    file = page_of(traced(overwritten), tmp_path)
    shown = Shown(browser, file)
    shown.press("ArrowLeft")
    address, moment = shown.page.url, shown.moment
    selected = shown.text("tr.selected")
    shown.finish()
    again = Shown(browser, file, "#" + address.partition("#")[2])
    assert again.moment == moment
    assert again.text("tr.selected") == selected
    again.finish()


def test_without_javascript_the_report_is_text(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path), java_script_enabled=False)
    assert "error[saved-tensor-modified-inplace]" in shown.text("#text")
    assert shown.text("main") == ""
    shown.finish()


def test_tables_sort_and_follow_the_selection(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path))
    rows = shown.page.locator(".table tbody tr")
    shown.page.click(".table thead button >> nth=0")
    shown.page.click(".table thead button >> nth=0")
    names = rows.locator("td:first-child").all_inner_texts()
    assert names == sorted(names, reverse=True)
    shown.page.check(".filter input")
    assert sorted(rows.locator("td:first-child").all_inner_texts()) == ["y", "z"]
    shown.finish()


def test_every_control_has_a_name(browser: Any, tmp_path: Path) -> None:
    shown = Shown(browser, page_of(traced(overwritten), tmp_path))
    nameless = shown.page.evaluate(
        "[...document.querySelectorAll('button, a, input, svg[role], section')].filter((each) => "
        "!(each.getAttribute('aria-label') || each.closest('label') || each.innerText.trim()))"
        ".map((each) => each.outerHTML)"
    )
    assert nameless == []
    shown.finish()


def test_markup_and_control_characters_of_a_program_are_text(browser: Any, tmp_path: Path) -> None:
    def hostile() -> None:
        held = {"</script><img src=x onerror=alert(1)>": torch.ones(2, requires_grad=True).exp()}
        held["</script><img src=x onerror=alert(1)>"].detach().add_(1)  # "{{data}} </style>
        held["</script><img src=x onerror=alert(1)>"].sum().backward()

    shown = Shown(browser, page_of(traced(hostile), tmp_path), "#selftest")
    assert "0 problems" in shown.text("#selftest")
    assert shown.page.evaluate("document.images.length") == 0
    assert "onerror=alert(1)" in shown.text(".code")
    shown.finish()


EACH = 40  # one in so many scripts of the catalogue is opened every time


def catalogue() -> list[object]:
    marks = [() if place % EACH == 0 else pytest.mark.complete for place in range(len(SCRIPTS))]
    return [pytest.param(script, id=script.stem, marks=mark) for script, mark in zip(SCRIPTS, marks, strict=True)]


@pytest.mark.parametrize("script", catalogue())
def test_the_page_of_a_script_opens_without_a_message(browser: Any, warm: Warm, tmp_path: Path, script: Path) -> None:
    _, trace = warm.traced(script)
    shown = Shown(browser, page_of(trace, tmp_path), "#selftest", viewport={"width": 900, "height": 800})
    assert shown.text("#selftest").splitlines()[0].endswith(", 0 problems"), shown.text("#selftest")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 900
    shown.finish()


def test_ranks_are_chosen_and_stay_at_the_same_line(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "ranks.html"
    file.write_text(ranks_to_html(report_of(ranks(3, odd=2)), RenderOptions()), encoding="utf-8")
    for width in (360, 1600):
        tested = Shown(browser, file, "#rank=2&selftest", viewport={"width": width, "height": 800})
        assert tested.text("#selftest").splitlines()[0].endswith(", 0 problems"), tested.text("#selftest")
        assert tested.page.evaluate("document.documentElement.scrollWidth") <= width
        tested.finish()
    shown = Shown(browser, file)
    chosen = shown.page.locator("[role=tab][aria-selected=true]")
    assert chosen.inner_text() == "rank 0"
    shown.page.click(".grid .differs td button")
    assert chosen.inner_text() == "rank 2"
    assert shown.text("#rank .line.current code").strip() == "loss = loss.exp()"
    assert shown.text(".grid tr.current code") == "loss = loss.exp()"
    shown.press("ArrowRight")
    assert shown.text("#rank .line.current code").strip() == "loss.backward()"
    shown.press("r")
    assert chosen.inner_text() == "rank 0"
    assert shown.text("#rank .line.current code").strip() == "loss.backward()"
    assert "rank=0" in shown.page.evaluate("window.location.hash")
    shown.press("R")
    assert chosen.inner_text() == "rank 2"
    shown.finish()
