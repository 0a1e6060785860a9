"""What the story says of each line, from real runs of small scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from warm import Warm

from tensorlens.analysis.names import Names
from tensorlens.analysis.story import Row, story
from tensorlens.analysis.tables import tensor_table
from tensorlens.model import Trace

Run = Callable[[str], Trace]


@pytest.fixture
def run(warm: Warm, tmp_path: Path) -> Run:
    def run(text: str) -> Trace:
        script = tmp_path / "script.py"
        script.write_text("import torch\n" + text, encoding="utf-8")
        return warm.traced(script)[1]

    return run


def told(trace: Trace) -> dict[str, list[str]]:
    """Source line -> `name: what happened` of each of its facts."""
    rows: list[Row] = [row for section in story(trace, Names(trace)) for row in section.rows]
    return {row.source.strip(): [f"{fact.name}: {fact.text}" for fact in row.facts] for row in rows}


def test_a_tensor_that_is_unpacked_gives_each_name_its_part(run: Run) -> None:
    trace = run("qkv = torch.ones(3, 2, requires_grad=True)\nq, k, v = qkv * 2\nscore = q @ k\n")
    by = "from qkv by MulBackward0, UnbindBackward0"
    assert told(trace)["q, k, v = qkv * 2"] == [f"q: {by}", f"k: {by}", f"v: {by}"]
    assert told(trace)["score = q @ k"] == ["score: from q, k by DotBackward0"]


def test_the_rows_of_a_loop_over_a_tensor_are_told_once_by_its_name(run: Run) -> None:
    trace = run("def f(table):\n    for row in table:\n        row * 2\ntable = torch.ones(5, 2)\nf(table)\n")
    assert told(trace)["for row in table:"] == ["row: view of table"]


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
def train():
    data = TensorDataset(torch.randn(6, 4), torch.randn(6, 1))
    for x, y in DataLoader(data, batch_size=2{}):
        loss = y - torch.nn.functional.relu(x)
train()
"""


def test_the_parts_of_a_batch_have_the_names_that_the_loop_gives_them(run: Run) -> None:
    facts = told(run(LOADER.format("")))
    assert {fact.partition(":")[0] for fact in facts["for x, y in DataLoader(data, batch_size=2):"]} == {"x", "y"}


def test_where_a_batch_is_put_together_in_another_order_no_name_is_guessed(run: Run) -> None:
    swapped = ", collate_fn=lambda pairs: [torch.stack([p[i] for p in pairs]) for i in (1, 0)][::-1]"
    facts = told(run(LOADER.format(swapped)))
    loop = next(line for line in facts if line.startswith("for x"))
    assert "x: from torch.randn(6, 1), no grad" not in facts[loop]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("print(x.sum().item())", "x.sum(): read as a number"),
        ("rest = float(x.sum().detach())", "x.sum().detach(): read as a number"),
        ("rest = (x * 2).tolist()", "x * 2: read as a list"),
        ("if x.sum() > 2: pass", "x.sum() > 2: read as true or false"),
        ("if x[0] == 1: pass", "x[0] == 1: read as true or false"),
        ("if x[0]: pass", "x[0]: read as true or false"),
        ("print(x.mean())", "x.mean(): from x by MeanBackward0"),
    ],
)
def test_a_line_that_keeps_no_tensor_is_told_by_what_it_comes_to(run: Run, line: str, fact: str) -> None:
    assert told(run(f"x = torch.ones(3, requires_grad=True)\n{line}\n"))[line] == [fact]


def test_a_tensor_that_is_only_passed_on_is_not_called_by_the_name_of_a_parameter_that_it_is_passed_to(
    run: Run,
) -> None:
    facts = told(run("def f(x):\n    return x.sum()\nx = torch.ones(3)\nout = f(x * 2)\nf(x[:2])\n"))
    assert facts["out = f(x * 2)"] == ["x * 2: from x, no grad"]
    assert facts["f(x[:2])"] == ["x[:2]: view of x"]


@pytest.mark.parametrize("line", ["net.state_dict()", "torch.save(net.state_dict(), '/dev/null')"])
def test_one_of_the_tensors_that_library_code_makes_is_not_told_as_its_value(run: Run, line: str) -> None:
    assert line not in told(run(f"net = torch.nn.Linear(3, 4)\n{line}\n"))


def test_parameters_are_counted_also_where_a_line_takes_many_tensors(run: Run) -> None:
    made = "net = torch.nn.LSTM(2, 2)\nx = torch.ones(3, 1, 2)\nh, c = torch.ones(1, 1, 2), torch.ones(1, 1, 2)\n"
    facts = told(run(f"{made}out, _ = net(x, (h, c))\n"))
    assert facts["out, _ = net(x, (h, c))"][0].startswith("out: from x, h, 4 parameters and 1 more by")


def test_a_call_that_turns_recording_off_by_itself_is_no_block(run: Run) -> None:
    made = "p = torch.nn.Parameter(torch.ones(2))\nupdate = torch.optim.swa_utils.get_ema_multi_avg_fn()\n"
    facts = told(run(f"{made}update([p], [p], 1)\nwith torch.no_grad():\n    p * 2\n"))
    assert ": gradient recording off (no_grad) in this call" in facts["update([p], [p], 1)"]
    assert facts["with torch.no_grad():"] == [": gradient recording off (no_grad) in this block"]


def test_a_function_that_returns_what_a_module_made_has_a_row(run: Run) -> None:
    trace = run("layer = torch.nn.Linear(2, 1)\ndef f(x):\n    return layer(x)\nf(torch.ones(4, 2))\n")
    assert told(trace)["return layer(x)"] == ["layer(x): from torch.ones(4, 2), 2 parameters by AddmmBackward0"]


def test_what_a_module_makes_before_it_calls_the_users_own_code_is_not_its_result(run: Run) -> None:
    own = "class Own(torch.nn.Module):\n    def forward(self, x):\n        h = x * 2\n        return h + 1\n"
    net = "net = torch.nn.Sequential(torch.nn.Linear(2, 2), Own(), torch.nn.Linear(2, 1))\n"
    trace = run(f"{own}{net}out = net(torch.ones(4, 2))\n")
    assert told(trace)["h = x * 2"] == ["h: from x by MulBackward0"]
    named_out = [fact for fact in told(trace)["out = net(torch.ones(4, 2))"] if fact.startswith("out: ")]
    assert len(named_out) == 1


def test_parameters_of_a_module_are_counted_and_its_buffers_come_last(run: Run) -> None:
    net = "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))\n"
    facts = told(run(f"{net}x = torch.ones(4, 2)\nout = net(x)\nagain = net(torch.ones(4, 2))\n"))
    assert facts["out = net(x)"][0].startswith("out: from x, 6 parameters, net[1].running_mean and 1 more by")


def test_when_no_tensor_is_left_the_table_shows_the_last_of_each_name(run: Run) -> None:
    table = tensor_table(
        trace := run("def f():\n    for _ in range(4):\n        y = torch.ones(2)\nf()\n"), Names(trace)
    )
    assert [row.name for row in table.rows] == ["y"]
    assert table.stale == "no tensor was left at the end"
