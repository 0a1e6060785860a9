"""Tests what the story says about each line, in real runs of small scripts."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.analysis.naming.names import Names
from tensorlens.analysis.story.story import Row, Section, story
from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call, Trace
from tensorlens.records.report import Report
from tensorlens.render.options import RenderOptions
from tensorlens.render.report.terminal import to_terminal

Run = Callable[[str], Trace]


@pytest.fixture
def run(warm: Warm, tmp_path: Path) -> Run:
    def run(text: str) -> Trace:
        script = tmp_path / "script.py"
        script.write_text("import torch\n" + text, encoding="utf-8")
        return warm.traced(script)[1]

    return run


def phrases_of(trace: Trace) -> dict[str, list[str]]:
    """Maps each source line to its phrases, `name: what happened`."""
    rows: list[Row] = [row for section in story(trace, Names(trace)) for row in section.rows]
    return {row.source.strip(): [f"{fact.name}: {fact.text}" for fact in row.facts] for row in rows}


def test_a_tensor_that_is_unpacked_gives_each_name_its_part(run: Run) -> None:
    trace = run("qkv = torch.ones(3, 2, requires_grad=True)\nq, k, v = qkv * 2\nscore = q @ k\n")
    by = "from qkv by MulBackward0, UnbindBackward0"
    assert phrases_of(trace)["q, k, v = qkv * 2"] == [f"q: {by}", f"k: {by}", f"v: {by}"]
    assert phrases_of(trace)["score = q @ k"] == ["score: from q, k by DotBackward0"]


def test_the_rows_of_a_loop_over_a_tensor_are_shown_once_by_its_name(run: Run) -> None:
    trace = run("def f(table):\n    for row in table:\n        row * 2\ntable = torch.ones(5, 2)\nf(table)\n")
    assert phrases_of(trace)["for row in table:"] == ["row: view of table"]


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
def train():
    data = TensorDataset(torch.randn(6, 4), torch.randn(6, 1))
    for x, y in DataLoader(data, batch_size=2{}):
        loss = y - torch.nn.functional.relu(x)
train()
"""


def test_the_parts_of_a_batch_have_the_names_that_the_loop_gives_them(run: Run) -> None:
    facts = phrases_of(run(LOADER.format("")))
    assert {fact.partition(":")[0] for fact in facts["for x, y in DataLoader(data, batch_size=2):"]} == {"x", "y"}


def test_no_name_is_guessed_if_a_batch_is_collated_in_another_order(run: Run) -> None:
    swapped = ", collate_fn=lambda pairs: [torch.stack([p[i] for p in pairs]) for i in (1, 0)][::-1]"
    facts = phrases_of(run(LOADER.format(swapped)))
    loop = next(line for line in facts if line.startswith("for x"))
    assert "x: from torch.randn(6, 1), requires no grad" not in facts[loop]


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("print(x.sum().item())", "x.sum(): read as a plain number"),
        ("rest = float(x.sum().detach())", "x.sum().detach(): read as a plain number"),
        ("rest = (x * 2).tolist()", "x * 2: read as a plain list"),
        ("if x.sum() > 2: pass", "x.sum() > 2: tested for True or False"),
        ("if x[0] == 1: pass", "x[0] == 1: tested for True or False"),
        ("if x[0]: pass", "x[0]: tested for True or False"),
        ("print(x.mean())", "x.mean(): from x by MeanBackward0"),
    ],
)
def test_a_line_that_stores_no_tensor_shows_the_value_it_reads_or_passes_on(run: Run, line: str, fact: str) -> None:
    assert phrases_of(run(f"x = torch.ones(3, requires_grad=True)\n{line}\n"))[line] == [fact]


def test_a_tensor_that_is_only_passed_on_is_not_called_by_the_name_of_a_parameter_that_it_is_passed_to(
    run: Run,
) -> None:
    facts = phrases_of(run("def f(x):\n    return x.sum()\nx = torch.ones(3)\nout = f(x * 2)\nf(x[:2])\n"))
    assert facts["out = f(x * 2)"] == ["x * 2: from x, requires no grad"]
    assert facts["f(x[:2])"] == ["x[:2]: view of x"]


@pytest.mark.parametrize("line", ["net.state_dict()", "torch.save(net.state_dict(), '/dev/null')"])
def test_one_of_several_tensors_that_library_code_makes_is_not_shown_as_its_value(run: Run, line: str) -> None:
    assert line not in phrases_of(run(f"net = torch.nn.Linear(3, 4)\n{line}\n"))


def test_parameters_are_counted_also_where_a_line_takes_many_tensors(run: Run) -> None:
    made = "net = torch.nn.LSTM(2, 2)\nx = torch.ones(3, 1, 2)\nh, c = torch.ones(1, 1, 2), torch.ones(1, 1, 2)\n"
    facts = phrases_of(run(f"{made}out, _ = net(x, (h, c))\n"))
    (out,) = [fact for fact in facts["out, _ = net(x, (h, c))"] if fact.startswith("out: ")]
    assert out.startswith("out: from 4 parameters by")
    assert out.endswith("; x, h, c enter as constants")


def test_a_call_that_turns_recording_off_by_itself_is_no_block(run: Run) -> None:
    made = "p = torch.nn.Parameter(torch.ones(2))\nupdate = torch.optim.swa_utils.get_ema_multi_avg_fn()\n"
    facts = phrases_of(run(f"{made}update([p], [p], 1)\nwith torch.no_grad():\n    p * 2\n"))
    assert ": gradient recording off (no_grad) in this call" in facts["update([p], [p], 1)"]
    assert facts["with torch.no_grad():"] == [": gradient recording off (no_grad) in this block"]


def test_a_function_that_returns_what_a_module_made_has_a_row(run: Run) -> None:
    trace = run("layer = torch.nn.Linear(2, 1)\ndef f(x):\n    return layer(x)\nf(torch.ones(4, 2))\n")
    assert phrases_of(trace)["return layer(x)"] == [
        "layer(x): from 2 parameters by AddmmBackward0; torch.ones(4, 2) enters as a constant"
    ]


def test_what_a_module_makes_before_it_calls_the_users_own_code_is_not_its_result(run: Run) -> None:
    own = "class Own(torch.nn.Module):\n    def forward(self, x):\n        h = x * 2\n        return h + 1\n"
    net = "net = torch.nn.Sequential(torch.nn.Linear(2, 2), Own(), torch.nn.Linear(2, 1))\n"
    trace = run(f"{own}{net}out = net(torch.ones(4, 2))\n")
    assert phrases_of(trace)["h = x * 2"] == ["h: from x by MulBackward0"]
    named_out = [fact for fact in phrases_of(trace)["out = net(torch.ones(4, 2))"] if fact.startswith("out: ")]
    assert len(named_out) == 1


def test_parameters_of_a_module_are_counted_and_its_buffers_come_last(run: Run) -> None:
    net = "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))\n"
    facts = phrases_of(run(f"{net}x = torch.ones(4, 2)\nout = net(x)\nagain = net(torch.ones(4, 2))\n"))
    (out,) = [fact for fact in facts["out = net(x)"] if fact.startswith("out: ")]
    assert out.startswith("out: from 6 parameters by")
    assert out.endswith("; x, net[1].running_mean, net[1].running_var enter as constants")


def test_a_source_that_does_not_require_grad_is_a_constant(run: Run) -> None:
    trace = run(
        "a = torch.ones(2, requires_grad=True)\nb = a.detach()\nc = b * 4 + a\nd = a.detach() * 2 + a\n"
        "b.requires_grad_()\ne = b * a\nwith torch.no_grad():\n    n = a * 2\nm = n + b\n"
    )
    facts = phrases_of(trace)
    assert facts["c = b * 4 + a"] == ["c: from a by AddBackward0; b enters as a constant"]
    assert facts["d = a.detach() * 2 + a"] == ["d: from a by AddBackward0"]
    assert facts["e = b * a"] == ["e: from b, a by MulBackward0"]
    assert facts["m = n + b"] == ["m: from b by AddBackward0; n enters as a constant"]


DOUBLE = """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        t = x * 2
        return t + 0
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
x = torch.ones(2, requires_grad=True)
"""


def test_the_inside_of_a_custom_function_makes_no_constant_of_its_input(run: Run) -> None:
    facts = phrases_of(run(DOUBLE + "y = Double.apply(x)\nz = Double.apply(x) + 1\nw = Double.apply(x * 2) * x\n"))
    for line in ("y = Double.apply(x)", "z = Double.apply(x) + 1", "w = Double.apply(x * 2) * x"):
        assert not [fact for fact in facts[line] if "constant" in fact], line


def test_what_is_copied_into_new_memory_comes_from_its_source(run: Run) -> None:
    facts = phrases_of(
        run(
            "a = torch.ones(3, requires_grad=True)\nb = torch.zeros(2, 3).copy_(a)\nc = torch.empty_like(a).copy_(a)\n"
            "d = torch.zeros(3).copy_(a.detach())\n"
        )
    )
    assert facts["b = torch.zeros(2, 3).copy_(a)"] == ["b: from a by CopyBackwards"]
    assert facts["c = torch.empty_like(a).copy_(a)"] == ["c: from a by CopyBackwards"]
    assert facts["d = torch.zeros(3).copy_(a.detach())"] == ["d: from a, requires no grad"]


def test_a_deep_copy_is_one_new_tensor(run: Run) -> None:
    trace = run("import copy\nx = torch.rand(2, 3)\nfull = copy.deepcopy(x)\ny = full * 2\nfull = copy.deepcopy(y)\n")
    facts = phrases_of(trace)
    assert facts["full = copy.deepcopy(x)"] == ["full: a deep copy of x, requires no grad"]
    assert facts["full = copy.deepcopy(y)"] == ["full: a deep copy of y, requires no grad"]
    storages = {row.name: row.storage for row in tensor_table(trace, Names(trace)).rows}
    shown = {
        fact.name: fact.storage for section in story(trace, Names(trace)) for row in section.rows for fact in row.facts
    }
    assert shown == storages


def test_no_name_is_used_before_it_is_set(run: Run) -> None:
    facts = phrases_of(
        run(
            "net = torch.nn.Linear(2, 1, bias=False)\na = torch.ones(2)\nsame = a.requires_grad_()\nW = net.weight\n"
            "kept = y = torch.ones(2, requires_grad=True)\ny = y.detach()\n"
        )
    )
    assert facts["net = torch.nn.Linear(2, 1, bias=False)"] == ["net.weight: new parameter, requires grad"]
    assert facts["same = a.requires_grad_()"] == ["a: requires grad now"]
    assert facts["y = y.detach()"] == ["y: same memory as kept, detached"]


def test_a_few_tensors_whose_gradient_is_set_are_named(run: Run) -> None:
    facts = phrases_of(
        run("one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)\ntwo(one(torch.ones(1, 2))).sum().backward()\n")
    )
    (fact,) = facts["two(one(torch.ones(1, 2))).sum().backward()"]
    assert fact == ": .grad of 4 tensors set: one.weight, one.bias, two.weight, two.bias"


def test_when_no_tensor_is_left_the_table_shows_the_last_of_each_name(run: Run) -> None:
    table = tensor_table(
        trace := run("def f():\n    for _ in range(4):\n        y = torch.ones(2)\nf()\n"), Names(trace)
    )
    assert [row.name for row in table.rows] == ["y"]
    assert table.stale == "no tensor existed any more at the end"


def test_gradients_that_accumulate_are_shown_though_their_texts_are_the_same(run: Run) -> None:
    net = "net = torch.nn.Linear(8, 8)\nfor _ in range(2):\n    net(torch.ones(1, 8)).sum().backward()\n"
    facts = phrases_of(run(net + "torch.autograd.grad(net(torch.ones(1, 8)).sum(), [net.weight])\n"))
    assert facts["net(torch.ones(1, 8)).sum().backward()"] == [
        "net.weight.grad: 8x8 float32, added to, v0 -> v1",
        "net.bias.grad: 8 float32, added to, v0 -> v1",
    ]
    assert "no .grad changed" in facts["torch.autograd.grad(net(torch.ones(1, 8)).sum(), [net.weight])"][-1]


def test_both_halves_of_a_switch_of_requires_grad_are_shown(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    library.joinpath("toggling.py").write_text(
        "def toggle(every, mine):\n    for p in every: p.requires_grad = False\n"
        "    for p in mine: p.requires_grad = True\n"
    )
    made = "a, b = (torch.ones(2, requires_grad=True) for _ in 'ab')\n"
    imports = f"import sys; sys.path.append({str(library)!r})\nimport toggling\n"
    facts = phrases_of(run(f"{imports}{made}toggling.toggle([a, b], [a])\n"))
    both = "a: requires no grad now, then requires grad now"
    assert facts["toggling.toggle([a, b], [a])"] == [both, "b: requires no grad now"]


def test_a_loop_on_one_line_shows_its_last_run(run: Run) -> None:
    loop = "o.zero_grad(); l = m(x).pow(2).mean(); l.backward(); o.step()"
    start = "m = torch.nn.Linear(1, 1, bias=False); o = torch.optim.SGD(m.parameters(), lr=.1); x = torch.ones(1, 1)\n"
    facts = phrases_of(run(f"{start}for _ in range(3): {loop}\n"))[f"for _ in range(3): {loop}"]
    assert [fact.partition(":")[0] for fact in facts] == ["m.weight.grad", "l", "m.weight.grad", "m.weight"]
    assert (facts[0], facts[-1]) == ("m.weight.grad: set to None", "m.weight: changed in place, v3 -> v4")


def test_a_module_path_is_a_parameters_name_also_when_its_function_has_returned(run: Run) -> None:
    main = "def main():\n    model = torch.nn.Sequential(torch.nn.Linear(2, 1))\n"
    main += "    model(torch.ones(1, 2)).sum().backward()\n"
    facts = phrases_of(run(f"{main}main()\n"))["model(torch.ones(1, 2)).sum().backward()"]
    assert [fact.partition(":")[0] for fact in facts] == ["model[0].weight.grad", "model[0].bias.grad"]


def test_an_attribute_is_not_named_after_its_object(run: Run) -> None:
    made = "def f():\n    m = torch.distributions.Categorical(torch.ones(2))\n    return m.sample()\nf()\n"
    assert "m" not in {fact.partition(":")[0] for facts in phrases_of(run(made)).values() for fact in facts}
    trace = run("net = torch.nn.Linear(2, 2).requires_grad_(False)\nout = net(torch.ones(1, 2))\n")
    assert "net" not in {fact.partition(":")[0] for facts in phrases_of(trace).values() for fact in facts}


def test_an_array_that_shares_memory_is_mentioned_once(run: Run) -> None:
    trace = run("import numpy\nfor _ in range(3):\n    x = torch.from_numpy(numpy.ones(2))\n    x.numpy()\n")
    text = to_terminal(Report(trace), RenderOptions(width=120))
    assert (text.count("memory with arrays"), "not seen" in text) == (1, False)


@pytest.mark.parametrize("seed", range(3))
def test_names_of_unpacked_values_are_what_the_names_hold(run: Run, tmp_path: Path, seed: int) -> None:
    """Random nested targets in a function, over values that library code makes: each name held what it is given to."""
    random.seed(seed)
    library = tmp_path / "site-packages"
    library.mkdir()
    library.joinpath(f"giving{seed}.py").write_text(
        "import torch\ndef fill(shape, n):\n"
        "    return [fill(part, n) if isinstance(part, list) else torch.full((n,), float(part)) for part in shape]\n"
        "def each(shape, n):\n    torch.zeros(n)\n    for _ in range(2):\n        yield fill(shape, n)\n"
    )
    count = itertools.count(1)
    lines = []
    for n in range(6):
        names: list[str] = []
        shape, target = nested(2, count, names)
        head = random.choice(
            [f"{target} = giving.fill({shape}, {n + 1})", f"for {target} in giving.each({shape}, {n + 1}):"]
        )
        use = " + ".join(f"{name}.sum()" for name in names)
        lines += [head, f"    last = {use}"] if head.startswith("for") else [head, f"last = {use}"]
        lines += [f"kept.update({name}={name}.clone())" for name in names]
    body = "\n".join(f"    {line}" for line in lines)
    imports = f"import sys; sys.path.append({str(library)!r})\nimport giving{seed} as giving\nkept = {{}}\n"
    trace = run(f"{imports}def f():\n{body}\nf()\n")
    names_of = Names(trace)
    clones = [event for event in trace.events if isinstance(event, Call) and event.op == "Tensor.clone"]
    assert clones
    for call in clones:
        assert names_of.script_name(call.inputs[0].tensor) == names_of.operands(call)[0]


def nested(depth: int, count: Iterator[int], names: list[str]) -> tuple[str, str]:
    """A random nested list of numbers, and targets that unpack it."""
    shapes, targets = [], []
    for _ in range(random.randint(2, 3)):
        number = next(count)
        if depth and random.random() < 0.4:
            shape, target = nested(depth - 1, count, names)
            targets.append(f"({target})")
        else:
            shape, target = str(number), f"v{number}"
            names.append(target)
            targets.append(target)
        shapes.append(shape)
    return f"[{', '.join(shapes)}]", ", ".join(targets)


def counts(trace: Trace) -> dict[str, str]:
    """Maps each source line to its count in the story."""
    return {row.source.strip(): row.count for section in story(trace, Names(trace)) for row in section.rows}


TRAINING = """
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to("cpu")
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.ones(6, 2), torch.ones(6, 2))
for x, y in torch.utils.data.DataLoader(data, batch_size=2):
    optimizer.zero_grad()
    loss = torch.nn.MSELoss()(net(x), y)
    for k in range(2):
        z = net(x)
    loss.backward()
    optimizer.step()
parts = [net(x) for _ in range(5)]
"""


def test_a_line_runs_as_often_as_the_lines_that_run_with_it(run: Run) -> None:
    found = counts(run(TRAINING))
    for line in (
        "for x, y in torch.utils.data.DataLoader(data, batch_size=2):",
        "optimizer.zero_grad()",  # of the first run there is no call
        "loss = torch.nn.MSELoss()(net(x), y)",
        "loss.backward()",
        "optimizer.step()",
    ):
        assert found[line] == "x3", line
    assert found["z = net(x)"] == "x3+"  # six times, and two of them follow each other
    assert found["parts = [net(x) for _ in range(5)]"] == ""
    assert found['net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)).to("cpu")'] == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = x * 2\n    if i == 1: continue\n    z = net(x)", "x2+"),
        ("if i == 1: continue\n    y = x * 2\n    z = net(x)", "x2"),
        ("z = net(x)\n    if i == 1: break\n    y = x * 2", "x2+"),
        ("if i == 1: z = net(x)\n    y = x * 2", "x1+"),
        ("y = x * 2 if i else x\n    z = net(x)", "x3+"),
    ],
)
def test_a_count_is_said_to_be_exact_only_where_nothing_jumps_between(run: Run, body: str, expected: str) -> None:
    found = counts(run(f"net, x = torch.nn.LSTM(2, 2), torch.ones(1, 2)\nfor i in range(3):\n    {body}\n"))
    source = next(line for line in found if "net(x)" in line)
    assert found[source] == expected


@pytest.mark.parametrize("seed", range(4))
def test_counts_of_random_loops_are_true(run: Run, seed: int) -> None:
    """Random nests of loops and branches: a count is how often the line ran, or with a plus not more than that."""
    random.seed(seed)
    lines = random_block(0, itertools.count())
    code = "\n".join(lines)
    ran: dict[str, int] = {}
    exec(re.sub(r"^( *)(.*)  # (\d+)$", r"\1ran['\3'] = ran.get('\3', 0) + 1", code, flags=re.M), {"ran": ran})
    start = "net, x, y = torch.nn.LSTM(2, 2), torch.ones(1, 2), torch.ones(2)\n"
    found = {line.rpartition("# ")[2]: count for line, count in counts(run(start + code)).items() if "# " in line}
    assert found
    assert found.keys() <= ran.keys()
    for number, count in found.items():
        times = int(count.strip("x+") or 1)
        assert times <= ran[number] if count.endswith("+") else times == ran[number], (number, count, ran[number])


def random_block(depth: int, count: Iterator[int]) -> list[str]:
    indent, lines = "    " * depth, []
    for _ in range(random.randint(2, 4)):
        number = next(count)
        kind = random.choice(["op", "net", "net", "list", "for", "if", "jump"] if depth else ["op", "net", "for"])
        variable = f"i{depth}"
        if kind == "for" and depth < 3:
            lines += [f"{indent}for {variable} in range({random.randint(1, 3)}):", *random_block(depth + 1, count)]
        elif kind == "if" and depth < 3:
            inner = [line.replace(f"i{depth}", f"i{depth - 1}") for line in random_block(depth + 1, count)]
            lines += [f"{indent}if i{depth - 1} == {random.randint(0, 2)}:", *inner]
        elif kind == "jump":
            lines.append(f"{indent}if i{depth - 1} == 1: {random.choice(['continue', 'break'])}")
        else:
            made = {"op": "y * 2", "list": "[net(x) for _ in range(2)]"}.get(kind, "net(x)")
            lines.append(f"{indent}z = {made}  # {number}")
    return lines


def test_a_name_that_a_later_line_gives_is_not_used_before(run: Run) -> None:
    body = "out = net(x)\nloss = torch.nn.MSELoss()(out, x)\nscore = out\nout = x * 2\n"
    start = "net, x = torch.nn.Linear(2, 2), torch.ones(1, 2)\n"
    facts = phrases_of(run(start + body))
    assert facts["loss = torch.nn.MSELoss()(out, x)"] == ["loss: from out by MseLossBackward0; x enters as a constant"]
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    facts = phrases_of(run(f"{start}def f():\n{inner}    return score\nkept = f()\n"))
    assert facts["loss = torch.nn.MSELoss()(out, x)"] == ["loss: from out by MseLossBackward0; x enters as a constant"]


def test_a_name_that_holds_several_tensors_is_not_the_name_of_one(run: Run) -> None:
    trace = run(
        "loader = torch.utils.data.DataLoader([(1., 2.), (3., 4.)], batch_size=1)\n"
        "for x, y in loader: z = x * y\nit = iter(loader)\nbatch = next(it)\n"
    )
    assert [fact.partition(":")[0] for fact in phrases_of(trace)["batch = next(it)"]] == ["batch[0]", "batch[1]"]


EMA = """
import contextlib
import torch
class Ema:
    def __init__(self, parameters):
        self.parameters = list(parameters)
    def copy_to(self):
        for p in self.parameters: p.data.copy_(p.data * 2)
    @contextlib.contextmanager
    def average(self):
        self.copy_to()
        yield
        self.copy_to()
"""


@pytest.mark.parametrize("line", ["ema.copy_to()", "with ema.average():"])
def test_a_call_without_a_value_is_not_the_name_of_a_tensor(run: Run, tmp_path: Path, line: str) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    library.joinpath("averaging.py").write_text(EMA)
    imports = f"import sys; sys.path.append({str(library)!r})\nfrom averaging import Ema\n"
    body = "\n    y = net(torch.ones(1, 3))" if line.startswith("with") else ""
    facts = phrases_of(run(f"{imports}net = torch.nn.Linear(3, 3)\nema = Ema(net.parameters())\n{line}{body}\n"))
    through = "changed through shared memory, its version stays"
    assert facts[line] == [f"net.weight: {through}", f"net.bias: {through}"]


def test_aliases_of_one_tensor_are_counted_once(run: Run) -> None:
    facts = phrases_of(
        run(
            "net = torch.nn.Linear(3, 3)\naverage = torch.optim.swa_utils.AveragedModel(net)\n"
            "for i in range(4):\n    average.update_parameters(net)\n"
        )
    )
    assert len(facts["average.update_parameters(net)"]) == 3


@pytest.mark.parametrize("foreach", [True, False])
def test_what_an_optimizer_keeps_for_itself_is_not_counted(run: Run, foreach: bool) -> None:
    net = "net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))\n"
    loop = "for _ in range(3):\n    net(torch.ones(1, 2)).sum().backward()\n    optimizer.step()\n"
    facts = phrases_of(run(f"{net}optimizer = torch.optim.Adam(net.parameters(), foreach={foreach})\n{loop}"))
    assert facts["optimizer.step()"] == [": 4 parameters changed in place"]


def test_the_name_on_the_line_comes_before_that_of_another_function(run: Run) -> None:
    start = "def f(x):\n    h = x * 2\n    return h\nx = torch.ones(1, 2, requires_grad=True)\n"
    facts = phrases_of(run(f"{start}def g():\n    best = f(x).max(1)[0]\n    return best.sum()\ng()\n"))
    assert facts["best = f(x).max(1)[0]"] == [
        "best: from f(x) by MaxBackward0",
        "f(x).max(1)[1]: from f(x), requires no grad",
    ]


def test_the_table_can_be_limited_to_some_tensors(run: Run) -> None:
    trace = run("a = torch.ones(3)\nb = a[:2]\nc = torch.ones(1)\nd = [torch.ones(2)] * 2\n")
    names = Names(trace)
    tensor = {names.display_name(state.tensor): state.tensor for state in trace.end.states}
    table = tensor_table(trace, names, only=frozenset({tensor["b"], tensor["c"]}))
    assert [(row.name, row.shares) for row in table.rows] == [("b", "a"), ("c", "")]
    assert (table.more, table.unnamed) == (0, 0)
    assert tensor_table(trace, names, only=frozenset()).rows == ()


NET = "net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))\nx = torch.ones(2, 3)\n"


def test_many_changed_gradients_are_called_gradients(run: Run) -> None:
    clip = "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)"
    assert phrases_of(run(f"{NET}net(x).sum().backward()\n{clip}\n"))[clip] == [": 4 gradients changed in place"]


def test_a_loop_over_parameters_says_how_many_others_it_changed(run: Run) -> None:
    loop = "with torch.no_grad():\n    for p in net.parameters():\n        p.mul_(2)\n"
    (row,) = [row for section in _sections(run(NET + loop)) for row in section.rows if "p.mul_" in row.source]
    assert (row.count, [fact.more for fact in row.facts]) == ("x4", [("other runs changed 3 other tensors",)])


def _sections(trace: Trace) -> tuple[Section, ...]:
    return story(trace, Names(trace))


def test_a_name_that_refers_to_another_tensor_by_now_is_not_used(run: Run) -> None:
    trace = run("b = torch.ones(3)\ne = b.view(-1)\nb = torch.zeros(3)\ne.add_(1)\n")
    (row,) = [row for section in _sections(trace) for row in section.rows if "e.add_" in row.source]
    assert [(fact.name, fact.more) for fact in row.facts] == [("e", ())]
    facts = phrases_of(run("a = torch.ones(2, requires_grad=True)\na = a * 2\na.sum().backward()\n"))
    assert facts["a.sum().backward()"] == ["a (of line 2).grad: None -> [2, 2]"]


def test_a_block_without_gradients_is_announced_once(run: Run) -> None:
    facts = phrases_of(run("x = torch.ones(2)\nwith torch.set_grad_enabled(False):\n    x * 2\n"))
    text = ": gradient recording off (set_grad_enabled) in this block"
    assert facts["with torch.set_grad_enabled(False):"] == [text]


def test_a_change_of_a_gradient_through_its_parameter_is_shown(run: Run) -> None:
    facts = phrases_of(run("w = torch.ones(2, requires_grad=True)\nw.sum().backward()\nw.grad.mul_(2)\n"))
    assert facts["w.grad.mul_(2)"] == ["w.grad: changed in place, v1 -> v2"]


def test_gradients_asked_of_a_result_are_not_said_to_leave_it_without(run: Run) -> None:
    line = "(c * 2).sum().backward(inputs=[c])"
    facts = phrases_of(run(f"a = torch.ones(2, requires_grad=True)\nc = a * 2\n{line}\n"))
    assert facts[line] == [": gradient of c computed"]


def test_a_loop_over_autograd_grad_is_counted_once_a_round(run: Run) -> None:
    lines = (
        "a = torch.ones(2, requires_grad=True)\nfor i in range(3):\n    g = torch.autograd.grad((a * a).sum(), a)[0]\n"
    )
    assert [row.count for section in _sections(run(lines)) for row in section.rows] == ["", "x3"]


def test_a_switch_inside_another_that_is_on_again_turned_nothing_off(run: Run) -> None:
    trace = run("x = torch.ones(2)\nwith torch.no_grad():\n    with torch.enable_grad():\n        x * 3\n    x * 4\n")
    facts = TraceIndex(trace)
    on, off = [call for call in facts.calls if call.op == "Tensor.mul"]
    assert facts.mode_switch(on.index) is None
    switch = facts.mode_switch(off.index)
    assert switch is not None
    assert switch.cause == "no_grad"


@pytest.mark.parametrize("text", ["x = (1 +\ny = 2\n", "def f():\nreturn\n"])
def test_a_line_that_python_can_not_read_has_no_count_of_runs(run: Run, text: str) -> None:
    trace = run(text)
    (section,) = story(trace, Names(trace))
    (row,) = section.rows
    assert row.count == ""
    assert row.facts[0].kind == "error"


def test_a_line_without_source_that_raises_a_syntax_error_itself_has_a_count(run: Run) -> None:
    text = "code = compile('raise SyntaxError', 'made.py', 'exec')\nfor _ in range(2):\n    try:\n        exec(code)\n"
    trace = run(text + "    except SyntaxError:\n        pass\nexec(code)\n")
    counts = {row.count for section in story(trace, Names(trace)) for row in section.rows if section.file == "made.py"}
    assert counts == {"x1+"}
