"""The data of a page: moments, states, memory and findings as the analysis has them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import torch
from support.recording import traced
from support.traces import written_alias

import tensorlens
from tensorlens.analysis.moments.run_moments import FIRST, LAST, Moments
from tensorlens.diagnostics import report_on
from tensorlens.records.model import Trace
from tensorlens.render import RenderOptions
from tensorlens.render.page.data import page_data
from tensorlens.render.page.strings import Strings, columns

SOURCE = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n"


def overwritten() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w.exp()
    z = y.detach()
    z.add_(1.0)
    y.sum().backward()


def trained() -> None:
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(torch.ones(3, 2)).sum().backward()
        optimizer.step()


def data_of(trace: Trace) -> dict[str, Any]:
    data = page_data(report_on(trace), RenderOptions())
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


def rows(data: dict[str, Any], table: dict[str, list[Any]], *texts: str) -> list[dict[str, Any]]:
    """Returns the rows of a table by columns; the columns `texts` as text."""
    names = list(table)
    found = [dict(zip(names, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return [{k: data["strings"][v] if k in texts else v for k, v in row.items()} for row in found]


def line_of(data: dict[str, Any], function: Callable[[], None], offset: int) -> int:
    """Returns the place of the first moment on a line of a function."""
    line = function.__code__.co_firstlineno + offset
    lines = data["places"]["line"]
    return next(at for at, place in enumerate(data["moments"]["place"]) if place >= 0 and lines[place] == line)


def test_the_page_opens_where_the_finding_is() -> None:
    data = data_of(traced(overwritten))
    [finding] = data["findings"]
    written, saved = line_of(data, overwritten, 4), line_of(data, overwritten, 2)
    moments = {label["role"]: label["moment"] for label in finding["labels"]}
    assert finding["code"] == "saved-tensor-modified-inplace"
    assert (moments["modified_here"], moments["saved_here"]) == (written, saved)
    assert data["start"]["moment"] == written
    assert data["start"]["tensor"] in finding["tensors"]
    assert data["moments"]["kind"][moments["needed_here"]] == data["kinds"].index("backward")


def test_a_pin_knows_the_write_that_broke_it_and_the_pass_that_found_it() -> None:
    data = data_of(traced(overwritten))
    [pin] = rows(data, data["memory"]["saves"], "node", "slot", "problem")
    assert (pin["node"], pin["slot"], pin["problem"]) == ("ExpBackward0", "result", "version")
    assert (pin["version"], pin["found"]) == (0, 1)
    assert (pin["saved"], pin["changed"]) == (line_of(data, overwritten, 2), line_of(data, overwritten, 4))
    assert data["moments"]["kind"][pin["needed"]] == data["kinds"].index("backward")
    [write] = rows(data, data["memory"]["writes"])
    assert (write["moment"], write["storage"]) == (pin["changed"], pin["storage"])


def test_tensors_that_share_memory_are_bars_of_one_lane() -> None:
    data = data_of(traced(overwritten))
    names = {row["id"]: row["name"] for row in rows(data, data["tensors"], "name")}
    [pin] = rows(data, data["memory"]["saves"])
    lane = [bar for bar in rows(data, data["memory"]["bars"]) if bar["storage"] == pin["storage"]]
    assert {names[bar["tensor"]] for bar in lane} == {"y", "z"}
    assert len({bar["row"] for bar in lane}) == 2


def test_states_are_differences_and_lead_to_the_end() -> None:
    trace = traced(trained)
    data = data_of(trace)
    states = rows(data, data["changes"]["states"], "grad_fn")
    assert [row["moment"] for row in states] == sorted(row["moment"] for row in states)
    last: dict[int, dict[str, Any]] = {}
    for row in states:
        before = last.get(row["tensor"])
        assert before is None or {**before, "moment": 0} != {**row, "moment": 0}
        last[row["tensor"]] = row
    versions = {row["counter"]: row["version"] for row in rows(data, data["changes"]["versions"])}
    for state in trace.end.states:
        assert last[state.tensor]["requires_grad"] == state.requires_grad
        assert last[state.tensor]["grad_fn"] == (state.grad_fn or "")
        assert versions[trace.tensors[state.tensor].counter] == state.version


def test_each_moment_belongs_to_a_run_that_says_what_happened() -> None:
    data = data_of(traced(trained))
    moments, runs = data["moments"], data["runs"]
    assert all(run >= 0 for run in moments["run"])
    for run, (first, last, texts) in enumerate(zip(runs["first"], runs["last"], runs["texts"], strict=True)):
        assert moments["run"][first] == moments["run"][last] == run
        assert texts, data["strings"][moments["op"][first]]


def test_the_iteration_of_a_moment_is_that_of_its_loop() -> None:
    data = data_of(traced(trained))
    step = trained.__code__.co_firstlineno + 6
    on_line = [place for place in data["runs"]["place"] if place >= 0 and data["places"]["line"][place] == step]
    turns = [data["strings"][turn] for turn, place in zip(data["runs"]["turn"], data["runs"]["place"], strict=True)
             if place in on_line]  # fmt: skip
    assert turns == ["iteration 1", "iteration 2"]


def test_the_graph_leads_from_the_loss_to_the_parameters() -> None:
    data = data_of(traced(trained))
    nodes = rows(data, data["graph"]["nodes"], "name", "module")
    edges = rows(data, data["graph"]["edges"])
    names = {row["id"]: row["name"] for row in rows(data, data["tensors"], "name")}
    assert [node["name"] for node in nodes] == ["AddmmBackward0", "SumBackward0"] * 2
    assert [node["module"] for node in nodes] == ["layer", ""] * 2
    leaves = [names[edge["tensor"]] for edge in edges if edge["source"] < 0]
    assert sorted(leaves) == ["layer.bias", "layer.bias", "layer.weight", "layer.weight"]
    assert [edge["to"] for edge in edges if edge["source"] >= 0] == [nodes[1]["moment"], nodes[3]["moment"]]
    assert [freed[1:] for freed in data["graph"]["freed"]] == [
        [nodes[0]["moment"], nodes[1]["moment"]],
        [nodes[2]["moment"], nodes[3]["moment"]],
    ]


def test_cuts_say_why_a_path_ends() -> None:
    def cut() -> None:
        w = torch.ones(2, requires_grad=True)
        h = w * 2
        h.detach()
        with torch.no_grad():
            h.sum()
        h.sum().item()

    data = data_of(traced(cut))
    texts = [cut["text"] for cut in rows(data, data["graph"]["cuts"], "text")]
    assert texts == [
        "the result of `detach()` has no graph", "gradient recording is off", "the result of `item()` has no graph",
    ]  # fmt: skip


def test_the_graph_ends_at_what_does_not_require_grad() -> None:
    def frozen() -> None:
        w = torch.ones(2, requires_grad=True)
        c = torch.ones(2)
        y = w * c
        c.requires_grad_()
        (y * c).sum()

    data = data_of(traced(frozen))
    names = {row["id"]: row["name"] for row in rows(data, data["tensors"], "name")}
    [end] = rows(data, data["graph"]["ends"])
    assert (names[end["tensor"]], end["to"]) == ("c", line_of(data, frozen, 3))


def test_a_run_with_training_has_the_norms_of_gradients() -> None:
    with tensorlens.trace(training=True) as lens:
        trained()
    data = json.loads(json.dumps(page_data(lens.report(), RenderOptions())))
    names = {row["id"]: row["name"] for row in rows(data, data["tensors"], "name")}
    norms = {names[int(number)]: text for number, text in data["norms"].items()}
    assert norms == {"layer.weight": "4.2 → 4.2", "layer.bias": "3 → 3"}
    assert data_of(traced(trained))["norms"] == {}


def test_a_page_opens_with_the_parameter_whose_path_is_cut() -> None:
    def cut() -> None:
        encoder, decoder = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        for _ in range(2):
            code = encoder(torch.ones(1, 2)).tanh()
            held = code.detach()
            loss = decoder(held).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    data = data_of(traced(cut))
    names = {row["id"]: row["name"] for row in rows(data, data["tensors"], "name")}
    assert names[data["start"]["tensor"]] == "encoder.weight"
    assert data["start"]["moment"] in data["graph"]["cuts"]["moment"]


def test_a_write_that_no_version_shows_is_a_moment_of_its_own() -> None:
    def hidden() -> None:
        w = torch.ones(2, requires_grad=True)
        y = w.exp()
        y.data.numpy()[0] = 7
        y.sum().backward()

    data = data_of(traced(hidden))
    kind = data["kinds"].index("hidden write")
    [at] = [at for at, number in enumerate(data["moments"]["kind"]) if number == kind]
    [write] = [row for row in rows(data, data["memory"]["writes"]) if row["moment"] == at]
    assert (write["before"], write["after"]) == (-1, -1)


def test_places_count_the_characters_that_are_shown() -> None:
    source = SOURCE.replace("out = ", "out\t = ")
    report = written_alias(source, names=("a", "out\t", "c"))
    data = page_data(report, RenderOptions())
    [block] = data["sources"][0]["blocks"]
    place = next(n for n, line in enumerate(data["places"]["line"]) if line == 2)
    begin, end = data["places"]["column"][place], data["places"]["end_column"][place]
    assert block["lines"][1][begin:end] == "a.sigmoid()"


def test_a_long_run_keeps_its_beginning_its_end_and_what_the_findings_need() -> None:
    trace = written_alias(SOURCE).trace
    call = trace.events[3]
    number = FIRST + LAST + 500
    calls = tuple(dataclasses.replace(call, index=index) for index in range(number))
    long = dataclasses.replace(trace, events=calls, failures=())
    moments = Moments(long, {FIRST + 250})
    kept = [moment.index for moment in moments.items[:-1]]
    assert kept == [*range(FIRST), FIRST + 250, *range(FIRST + 500, number)]
    assert moments.left_out == 499
    assert moments.of_event(FIRST + 100) is None
    assert kept[moments.since(FIRST + 100)] == FIRST + 250


def test_a_text_is_kept_once_and_none_is_a_number() -> None:
    strings = Strings()
    assert [strings.number(text) for text in ("", "a", "b\u202e", "a")] == [0, 1, 2, 1]
    assert strings.texts == ["", "a", "b\\u202e"]
    assert columns("x y", [(None, True), (3, False)]) == {"x": [-1, 3], "y": [1, 0]}


def test_reports_show_themselves_in_notebooks() -> None:
    report = report_on(traced(overwritten))
    tensorlens.trace()
    html = report._repr_html_()
    assert html is not None
    assert html.startswith('<div class="tensorlens"><style>')
    assert '</style><iframe srcdoc="&lt;!doctype html&gt;' in html
    assert 'sandbox="allow-scripts"' in html
    assert html.count("<") == 6, "the page is escaped"
    shown = report._repr_mimebundle_(include=None, exclude=None)
    assert shown["text/html"] == html
    assert "error[saved-tensor-modified-inplace]" in shown["text/plain"]


def test_a_pass_that_adds_to_a_gradient_moves_its_version() -> None:
    def twice() -> None:
        w = torch.ones(2, requires_grad=True)
        w.sum().backward()
        (w * 3).sum().backward()

    trace = traced(twice)
    data = data_of(trace)
    passes = [at for at, kind in enumerate(data["moments"]["kind"]) if data["kinds"][kind] == "backward"]
    [write] = rows(data, data["memory"]["writes"])
    counter = trace.tensors[write["tensor"]].counter
    assert write["moment"] == passes[1]
    assert write["after"] == write["before"] + 1
    changed = [row for row in rows(data, data["changes"]["versions"]) if row["counter"] == counter]
    assert (changed[-1]["moment"], changed[-1]["version"]) == (passes[1], write["after"])
