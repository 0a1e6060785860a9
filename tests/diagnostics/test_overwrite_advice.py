"""Advice on overwritten tensors and released graphs: the line that it names, its edit, and what it must not offer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.first_help import Programs
from support.warm import Warm

from tensorlens.records.report import Diagnostic, Fix

Find = Callable[[str], Diagnostic]
HEAD = "import torch\nfrom torch import nn\n"


@pytest.fixture
def found(warm: Warm, tmp_path: Path) -> Find:
    """Runs a program and returns its first finding."""
    return Programs(warm, tmp_path, HEAD).first


def line_of(fix: Fix) -> int | None:
    return None if fix.place is None else fix.place.line


def texts(finding: Diagnostic) -> dict[str, str]:
    return {label.role: label.text for label in finding.labels}


def test_a_step_is_moved_in_the_function_that_both_lines_share(found: Find) -> None:
    finding = found(
        """
        def update(optimizer, loss):
            loss.backward()
            optimizer.step()

        def learn(maker, judge):
            fake = maker(torch.ones(4, 2))
            first, second = judge(fake.detach()).mean(), judge(fake).mean()
            update(torch.optim.SGD(judge.parameters(), lr=0.1), first)
            update(torch.optim.SGD(maker.parameters(), lr=0.1), second)

        learn(nn.Linear(2, 3), nn.Linear(3, 1))
        """
    )
    again, moved = finding.fixes
    assert (line_of(again), line_of(moved)) == (11, 11)
    assert "`second`" in again.title
    assert "below line 12" in moved.title
    assert "else its step also uses those of line 12" in moved.title
    assert texts(finding)["saved_here"].startswith("`nn.Linear` kept its `weight`")
    assert finding.title == "`optimizer.step()` overwrote `judge.weight`, which backward still needs"


def test_an_update_is_not_moved_where_the_new_values_are_read(found: Find) -> None:
    finding = found(
        """
        w = torch.ones(3, requires_grad=True)
        loss = (w ** 2).sum()
        with torch.no_grad():
            w.mul_(0.5)
        other = w.detach() * 2
        (loss + other.sum()).backward()
        """
    )
    assert not any(fix.title.startswith("move") for fix in finding.fixes)


def test_a_block_moves_as_a_whole(found: Find) -> None:
    finding = found(
        """
        w = torch.ones(3, requires_grad=True)
        loss = (w ** 2).sum()
        with torch.no_grad():
            w.mul_(0.5)
        loss.backward()
        """
    )
    assert finding.fixes[0].title.startswith("move lines 6 to 7 below line 8")


def test_a_loop_that_restores_parameters_computes_with_copies(found: Find) -> None:
    finding = found(
        """
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        start = {k: v.clone() for k, v in net.state_dict().items()}
        total = torch.zeros(())
        for task in range(2):
            total = total + net(torch.ones(3, 2)).square().sum()
            net.load_state_dict(start)
        total.backward()
        """
    )
    copied = finding.fixes[0]
    assert copied.title == "let `net` compute with copies of its parameters: no value changes"
    assert (line_of(copied), copied.edits[0].text.count("functional_call(net, ")) == (8, 1)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x += y * y", "x = x + y * y"),
        ("x *= y + y", "x = x * (y + y)"),
        ("x -= y - y", "x = x - (y - y)"),
        ("x /= -y", "x = x / (-y)"),
        ("x.mul_(y).add_(y, alpha=2)", "x = x.mul(y).add(y, alpha=2)"),
        ("z = x.mul_(y)", "z = x.mul(y)"),
        (
            "x = nn.functional.relu(x - y, inplace=True) + x.neg_()",
            "x = nn.functional.relu(x - y, inplace=True) + x.neg()",
        ),
    ],
)
def test_the_edit_of_an_operation_in_place(line: str, after: str, found: Find) -> None:
    finding = found(
        f"""
        y = torch.full((3,), 0.5)
        x = torch.ones(3, requires_grad=True).sigmoid()
        kept = x.exp().sum() + (x * x).sum()
        {line}
        (kept + x.sum()).backward()
        """
    )
    (edit,) = next(fix for fix in finding.fixes if " keep a copy " not in fix.title).edits
    assert line[: edit.span.column] + edit.text + line[edit.span.end_column :] == after


def test_an_alias_that_is_read_later_is_named(found: Find) -> None:
    finding = found(
        """
        x = torch.ones(3, requires_grad=True).sigmoid()
        part = x[:2]
        x += 1
        (part.sum() + x.sum()).backward()
        """
    )
    assert [fix.title for fix in finding.fixes] == [
        "let sigmoid keep a copy of its result: no value changes",
        "or make a new tensor; `part` then stays as it was",
    ]


def test_an_argument_that_is_replaced_leaves_the_callers_tensor(found: Find) -> None:
    finding = found(
        """
        def scaled(x):
            x *= 2
            return x

        scaled(torch.ones(3, requires_grad=True).sigmoid()).sum().backward()
        """
    )
    assert finding.fixes[0].title.endswith("the caller's tensor then stays as it was")


def test_other_runs_of_the_line_are_counted(found: Find) -> None:
    finding = found(
        """
        w = torch.ones(3, requires_grad=True)
        h = torch.ones(3)
        total = 0
        for step in range(4):
            total = total + (w * h).sum()
            h += 1
        total.backward()
        """
    )
    (detail,) = finding.detail
    assert "3 other runs of line 8 have the same problem" in detail
    assert "version" in detail
    assert "version" not in " ".join((finding.title, finding.explanation, *texts(finding).values()))


def test_the_first_layer_with_inplace_is_named(found: Find) -> None:
    finding = found(
        """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3))

            def forward(self, x):
                return self.body(x) + x.new_ones(1)

        x = torch.randn(2, 3, requires_grad=True).sigmoid()
        (Block()(x).sum() + x.sum()).backward()
        """
    )
    copied, fix = finding.fixes
    assert copied.title == "let sigmoid keep a copy of its result: no value changes"
    assert fix.title.startswith("or `self.body` begins with `nn.ReLU(inplace=True)`, which writes into its input")
    assert (line_of(fix), fix.edits[0].text) == (7, "nn.ReLU()")


def test_the_two_passes_of_a_line_are_in_order(found: Find) -> None:
    finding = found(
        """
        w = torch.ones(3, requires_grad=True)
        y = w.exp().sum()
        for step in range(2):
            y.backward()
        """
    )
    assert texts(finding)["freed_here"] == "pass 1: this backward released the graph"
    assert texts(finding)["needed_here"].startswith("pass 2: ")


def test_a_name_that_does_not_carry_the_graph_is_not_named(found: Find) -> None:
    finding = found(
        """
        cell = nn.Linear(3, 3)
        kept = []
        for step in range(2):
            h = cell(torch.ones(1, 3)).exp()
            kept.append(h)
            loss = sum(each.sum() for each in kept)
            loss.backward()
        """
    )
    assert not any("`h = h.detach()`" in fix.title for fix in finding.fixes)


def test_the_state_of_an_lstm_is_detached_as_a_tuple(found: Find) -> None:
    finding = found(
        """
        class Memory(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.state = nn.LSTM(2, 3), None

            def forward(self, x):
                y, self.state = self.lstm(x, self.state)
                return y

        def train(net):
            for step in range(2):
                net(torch.ones(4, 1, 2)).sum().backward()

        train(Memory())
        """
    )
    assert "`net.state` leads back to the graph of the pass before: detach it below this line" in finding.fixes[0].title
    assert "tuple(t.detach() for t in net.state)" in finding.fixes[0].edits[0].text
    assert line_of(finding.fixes[0]) == 15


def test_losses_are_not_added_across_cleared_gradients(found: Find) -> None:
    program = """
        w = torch.ones(3, requires_grad=True)
        h = w.exp()
        h.sum().backward()
        {}
        h.square().sum().backward()
        """
    together = "add what both differentiate"
    assert any(together in fix.title for fix in found(program.format("pass")).fixes)
    assert not any(together in fix.title for fix in found(program.format("w.grad = None")).fixes)


def test_a_layer_inside_a_sequential_that_overwrites_a_result_is_named(found: Find) -> None:
    finding = found(
        """
        block = nn.Sequential(nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(inplace=True))
        block(torch.ones(2, 3)).sum().backward()
        """
    )
    (layer,) = finding.fixes
    assert "the result of sigmoid inside it" in finding.title
    assert layer.title == "`block[2]` is `nn.ReLU(inplace=True)`, which writes into its input: use `nn.ReLU()`"
    assert (line_of(layer), layer.edits[0].text) == (4, "nn.ReLU()")


def test_a_copy_of_the_input_is_not_offered_for_a_write_to_an_inner_result(found: Find) -> None:
    finding = found(
        """
        layers = [nn.Linear(3, 3), nn.Sigmoid(), nn.ReLU(True)]
        block = nn.Sequential(*layers)
        block(torch.ones(2, 3)).sum().backward()
        """
    )
    (inner,) = finding.fixes
    assert "clone" not in inner.title
    assert inner.title.startswith("have `block(torch.ones(2, 3))` make a new tensor")


def test_a_helper_that_also_runs_backward_is_moved_if_it_clears_the_gradients(found: Find) -> None:
    finding = found(
        """
        net, head = nn.Linear(2, 2), nn.Linear(2, 1)
        def update(optimizer, loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        def learn():
            first, second = head(torch.ones(1, 2)).sum(), head(net(torch.ones(1, 2))).sum()
            update(torch.optim.SGD(head.parameters(), lr=0.1), first)
            update(torch.optim.SGD(net.parameters(), lr=0.1), second)
        learn()
        """
    )
    _, moved = finding.fixes
    assert moved.title.startswith("or move `update(torch.optim.SGD(head.parameters(")
    assert moved.title.endswith(
        "below line 12, if it clears the gradients first: else its step also uses those of line 12"
    )
