"""Graphs that no longer fit their values, and graphs that nobody needs: found with their lines, or left alone."""

from __future__ import annotations

import pytest
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

UNRECORDED = {
    "a row of a hidden state": """
        import torch
        cell = torch.nn.RNNCell(2, 3)
        done = torch.tensor([True, False])
        h = torch.zeros(2, 3)
        for step in range(2):
            h = cell(torch.ones(2, 2), h) + 0  # graph_built_here
            with torch.no_grad():  # grad_mode_off_here
                h[done] = 0.0  # modified_here
        h.sum().backward()  # needed_here
        """,
    "through an array": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2  # graph_built_here
        array = h.detach().numpy()
        array[0] = 9  # modified_here
        (h * 3).sum().backward()  # needed_here
        """,
    "itself, added": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2  # graph_built_here
        with torch.no_grad():  # grad_mode_off_here
            h += h  # modified_here
        h.sum().backward()  # needed_here
        """,
    "through a view": """
        import torch
        w = torch.ones(4, requires_grad=True)
        h = w * 2  # graph_built_here
        first = h.detach()[:2]
        first.mul_(5)  # modified_here
        loss = (h + 1).sum()
        loss.backward()  # needed_here
        """,
}


@pytest.mark.parametrize("program", UNRECORDED)
def test_a_change_without_a_record_is_found_where_backward_passes(program: str, run: Run) -> None:  # noqa: F811
    expect(run, "no-grad-write-not-in-gradient", UNRECORDED[program])


HARMLESS_CHANGES = {
    "a value with the gradient of another": """
        import torch
        w = torch.ones(3, requires_grad=True)
        for _ in range(2):
            h = w * 2
            h.data.clamp_(-0.5, 0.5)
            (h * 3).sum().backward()
        """,
    "noise that is added": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        with torch.no_grad():
            h += 0.1 * torch.randn(3)
            h.data.sub_(1)
        h.square().sum().backward()
        """,
    "recorded": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w + 0
        h.mul_(10)
        h.sum().backward()
        """,
    "after the last use": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w + 0
        loss = h.sum()
        with torch.no_grad():
            h.mul_(10)
        loss.backward()
        print(h)
        """,
    "a leaf": """
        import torch
        w = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            w.mul_(10)
        w.sum().backward()
        """,
    "detached for good": """
        import torch
        w = torch.ones(3, requires_grad=True)
        h = w * 2
        h.detach_()
        with torch.no_grad():
            h.mul_(10)
        (h * w).sum().backward()
        """,
    "a running average in a buffer": """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4))
        mean = torch.zeros(4)
        for step in range(3):
            out = net(torch.randn(8, 2))
            with torch.no_grad():
                mean.mul_(0.9).add_(out.mean(0), alpha=0.1)
            (out - mean).square().sum().backward()
        """,
}


@pytest.mark.parametrize("program", HARMLESS_CHANGES)
def test_a_change_that_no_gradient_misses_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS_CHANGES[program])


TOTALS = {
    "in a function": """
        import torch

        def train(net, steps):
            total = torch.zeros(())
            for step in range(steps):
                loss = net(torch.ones(2, 3)).square().mean()  # graph_built_here
                net.zero_grad()
                loss.backward()
                total += loss  # shared_here
            return total.item() / steps

        print(train(torch.nn.Linear(3, 1), 4) > 0)
        """,
    "of an evaluation that records": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(1, 3)).square().sum().backward()
        optimizer.step()
        total = 0.0
        for batch in torch.ones(5, 4, 3):
            total += net(batch).square().mean()  # graph_built_here, shared_here
        print((total / 5).item())
        """,
    "an average": """
        import torch
        w = torch.ones(3, requires_grad=True)
        average = torch.tensor(0.0)
        for step in range(5):
            loss = (w * w).sum()  # graph_built_here
            average = 0.9 * average + 0.1 * loss  # shared_here
            loss.backward()
        print(average)
        """,
    "one method of several meters": """
        import torch

        class Meter:
            def __init__(self):
                self.value = torch.zeros(())

            def add(self, value):
                self.value = 0.9 * self.value + 0.1 * value  # shared_here

        w = torch.ones(3, requires_grad=True)
        meters = [Meter(), Meter(), Meter()]
        for step in range(5):
            error = (w * step).square().sum()
            size = w.abs().sum()
            loss = error + size  # graph_built_here
            loss.backward()
            for meter, value in zip(meters, (error, size, loss)):
                meter.add(value)
        print([meter.value.item() for meter in meters])
        """,
    "a state beside a loop that is trained": """
        import torch
        cell, head = torch.nn.GRUCell(2, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)

        def forward(x, h):
            return cell(x, h)  # graph_built_here, shared_here

        memory = torch.zeros(1, 3)
        for step in range(4):
            memory = forward(torch.ones(1, 2), memory)
            h = torch.zeros(1, 3)
            for _ in range(2):
                h = forward(torch.ones(1, 2), h)
            optimizer.zero_grad()
            head(h).square().sum().backward()
            optimizer.step()
        print(memory.sum() < 1e9)
        """,
}


@pytest.mark.parametrize("program", TOTALS)
def test_a_total_that_keeps_every_graph_is_found(program: str, run: Run) -> None:  # noqa: F811
    found = expect(run, "running-total-keeps-graph-alive", TOTALS[program])
    assert found.evidence["rounds"] in (4, 5)


def test_a_line_that_a_loss_needs_is_not_to_be_detached(run: Run) -> None:  # noqa: F811
    found = expect(run, "running-total-keeps-graph-alive", TOTALS["a state beside a loop that is trained"])
    (help_,) = found.fixes
    assert "`memory` keeps" in help_.title
    assert "backward passes need other runs of this line" in help_.title
    assert (help_.edits, help_.place) == ((), None)


LAST_ALONE = """
    import torch
    w = torch.ones(3, requires_grad=True)
    total = 0.0
    for part in range(4):
        loss = (w * part).square().sum()  # graph_built_here
        total = total + loss  # shared_here
    loss.backward()  # needed_here
    print(total.item())
    """


def test_a_total_of_the_rounds_of_one_pass_may_be_the_loss(run: Run) -> None:  # noqa: F811
    found = expect(run, "running-total-keeps-graph-alive", LAST_ALONE)
    assert found.fixes[0].title == "call backward on `total`, if each round is to count"
    assert "starts from the last `loss` alone" in [label.text for label in found.labels]


HARMLESS_TOTALS = {
    "a number": """
        import torch
        w, total = torch.ones(3, requires_grad=True), 0.0
        for step in range(4):
            loss = (w * w).sum()
            loss.backward()
            total += loss.item()
        """,
    "a norm of all parameters": """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(2):
            net(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            print(sum((p**2).sum() for p in net.parameters()).item() > 0)
        total = 0
        for p in net.parameters():
            norm = p.norm()
            total = total + norm**2
        print(total.sqrt().item() > 0)
        """,
    "a sum of errors that were there before": """
        import torch
        net = torch.nn.Linear(3, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(4):
            errors = dict(zip("abcd", net(torch.ones(2, 3)).unbind(1)))
            optimizer.zero_grad()
            sum(k * (e**2).mean() for k, e in enumerate(errors.values())).backward()
            optimizer.step()
            if step % 2:
                plain = sum((e**2).mean() for e in errors.values()).item()
        print(plain > 0)
        """,
    "a state, run once after training": """
        import torch
        cell, head = torch.nn.RNNCell(2, 3), torch.nn.Linear(3, 1)
        xs = torch.ones(5, 1, 2)
        h = torch.zeros(1, 3)
        for x in xs:
            h = cell(x, h)
        head(h).sum().backward()
        h = torch.zeros(1, 3)
        for x in xs:
            h = torch.tanh(cell(x, h))
        print(head(h).item() < 1e9)
        """,
    "for one backward": """
        import torch
        w, total = torch.ones(3, requires_grad=True), 0.0
        for step in range(4):
            loss = (w * step).exp().sum()
            total = total + loss
        total.backward()
        print(total.item())
        """,
    "several meters without graphs": """
        import torch

        class Meter:
            def __init__(self):
                self.value = torch.zeros(())

            def add(self, value):
                self.value = 0.9 * self.value + 0.1 * value

        w = torch.ones(3, requires_grad=True)
        meters = [Meter(), Meter()]
        for step in range(5):
            loss = (w * step).square().sum()
            loss.backward()
            for meter, value in zip(meters, (loss.detach(), loss.item())):
                meter.add(value)
        print([meter.value for meter in meters])
        """,
    "a state of an actor beside a learner": """
        import torch
        cell, head = torch.nn.GRUCell(2, 3), torch.nn.Linear(3, 1)

        def forward(x, h):
            return cell(x, h)

        memory = torch.zeros(1, 3)
        for step in range(4):
            with torch.no_grad():
                memory = forward(torch.ones(1, 2), memory)
            h = memory
            for _ in range(3):
                h = forward(torch.ones(1, 2), h)
            head(h).square().sum().backward()
        print(memory.sum() < 1e9)
        """,
    "a state that is cut": """
        import torch
        w, h = torch.ones(3, requires_grad=True), torch.zeros(3)
        for step in range(4):
            h = torch.tanh(w * h.detach() + 1)
            h.sum().backward()
        """,
    "layers below one line": """
        import torch
        net = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(5)), torch.nn.Linear(3, 1))
        y = net(torch.ones(1, 3))
        print(y.item() < 1e9)
        """,
    "layers": """
        import torch
        net = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(5)))
        print(net(torch.ones(3)).sum().item())
        """,
    "through time": """
        import torch
        cell = torch.nn.RNNCell(2, 3)
        for epoch in range(2):
            h = torch.zeros(1, 3)
            for step in range(4):
                h = cell(torch.ones(1, 2), h)
            h.sum().backward()
        """,
}


@pytest.mark.parametrize("program", HARMLESS_TOTALS)
def test_a_graph_that_is_needed_or_freed_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS_TOTALS[program])


LISTS = {
    "read in the end, then emptied": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for step in range(6):
            loss = (net(torch.ones(4, 3)) - 1).square().mean()  # graph_built_here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)  # shared_here
        print(len([loss.item() for loss in losses]))
        losses.clear()
        """,
    "of a helper whose other results are dropped": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []

        def error(x):
            return (net(x) - 1).square().mean()  # graph_built_here

        for epoch in range(6):
            optimizer.zero_grad()
            loss = error(torch.ones(4, 3))
            loss.backward()
            optimizer.step()
            losses.append(error(torch.zeros(4, 3)))  # shared_here
        """,
    "of records": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        memory = []
        for step in range(6):
            scores = []
            for x in torch.ones(2, 3):
                scores.append(net(x).sigmoid())  # graph_built_here
                memory.append({"input": x, "score": scores[-1]})  # shared_here
            optimizer.zero_grad()
            torch.cat(scores).sum().backward()
            optimizer.step()
        """,
    "never read, and deleted": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.Adam(net.parameters())
        history = {"loss": []}

        def step():
            loss = torch.nn.functional.mse_loss(net(torch.ones(4, 3)), torch.ones(4, 1))  # graph_built_here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(7):
            value = step()
            history["loss"].append(value)  # shared_here
        del history, value
        """,
    "without an optimizer": """
        import torch
        w, losses = torch.ones(3, requires_grad=True), []
        for step in range(6):
            losses.append((w * w).sum())  # graph_built_here, shared_here
            losses[-1].backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
        losses.clear()
        """,
    "emptied after each epoch": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            running = []
            for batch in range(5):
                loss = net(torch.ones(4, 3)).square().mean()  # graph_built_here
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                running.append(loss)  # shared_here
            print(torch.stack(running).mean().item() >= 0)
        """,
    "predictions": """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        seen = []
        for batch in range(4):
            out = net(torch.ones(4, 3))  # graph_built_here
            seen += [out]  # shared_here
            optimizer.zero_grad()
            (out - 1).square().mean().backward()
            optimizer.step()
        print(torch.cat(seen).shape)
        """,
}


@pytest.mark.parametrize("program", LISTS)
def test_a_list_that_keeps_every_graph_is_found(program: str, run: Run) -> None:  # noqa: F811
    found = expect(run, "running-total-keeps-graph-alive", LISTS[program])
    assert found.evidence["rounds"] in (4, 5, 6)


def test_a_list_is_told_by_its_name(run: Run) -> None:  # noqa: F811
    found = expect(run, "running-total-keeps-graph-alive", LISTS["of a helper whose other results are dropped"])
    assert found.title == "`losses` keeps the graphs of 5 earlier steps alive"


def test_the_help_is_an_expression_of_python(run: Run) -> None:  # noqa: F811
    found = expect(
        run,
        "running-total-keeps-graph-alive",
        """
        import torch
        w, kept = torch.ones(3, requires_grad=True), {}
        optimizer = torch.optim.SGD([w], lr=0.1)
        def loss_of(step):
            return (w * step).sum() - w.sum() ** 2  # graph_built_here
        for step in range(8):
            optimizer.zero_grad()
            kept.setdefault(step % 4, set()).add(loss_of(step))  # shared_here
            sum(list(kept[step % 4])[-1:]).backward(retain_graph=True)
            optimizer.step()
        """,
    )
    assert "`((w * step).sum() - w.sum() ** 2).item()`" in found.fixes[0].title


HARMLESS_LISTS = {
    "numbers, values and snapshots": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        numbers, values, snapshots = [], [], []
        for step in range(11):
            optimizer.zero_grad()
            loss = net(torch.ones(4, 3)).square().mean()
            loss.backward()
            optimizer.step()
            numbers.append(loss.item())
            values.append(loss.detach())
            snapshots.append(net.weight.clone())
        """,
    "cut in place": """
        import torch
        w, losses = torch.ones(3, requires_grad=True), []
        for step in range(11):
            loss = (w * w).sum()
            loss.backward()
            losses.append(loss.detach_())
        """,
    "parts of a batch": """
        import torch
        net = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(6):
            parts = []
            for part in range(6):
                loss = net(torch.ones(4, 3)).square().mean() / 6
                loss.backward()
                parts.append(loss)
            optimizer.step()
            optimizer.zero_grad()
            print(sum(parts).item() >= 0)
        """,
    "a few steps back through time": """
        import torch
        from collections import deque
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        h, back = torch.zeros(3), deque(maxlen=8)
        for step in range(12):
            before = h.detach().requires_grad_()
            h = before + w
            back.append((before, h))
            gradient = torch.ones(3)
            optimizer.zero_grad()
            for start, end in reversed(back):
                end.backward(gradient)
                gradient, start.grad = start.grad, None
            optimizer.step()
        """,
    "inner steps": """
        import torch
        w, losses = torch.ones(3, requires_grad=True), []
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(2):
            for task in range(6):
                fast = w * 1
                (gradient,) = torch.autograd.grad(fast.square().sum(), fast, create_graph=True)
                losses.append((fast - 0.1 * gradient).square().sum())
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            optimizer.step()
            losses.clear()
        """,
    "the graph of a gradient": """
        import warnings
        import torch
        warnings.simplefilter("ignore")
        def valley(point):
            x, y = point
            return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2
        def descend():
            point = torch.tensor([-2.0, 2.0]).requires_grad_()
            optimizer = torch.optim.SGD([point], lr=1e-4)
            for step in range(6):
                optimizer.zero_grad()
                valley(point).backward(create_graph=True)
                optimizer.step()
        for run in range(13):
            descend()
        """,
    "an episode": """
        import torch
        net = torch.nn.Linear(3, 2)
        optimizer = torch.optim.Adam(net.parameters())
        chances = []
        for episode in range(4):
            for move in range(6):
                chances.append(net(torch.ones(3)).log_softmax(0)[0])
            optimizer.zero_grad()
            (-torch.stack(chances).sum()).backward()
            optimizer.step()
            del chances[:]
        """,
}


@pytest.mark.parametrize("program", HARMLESS_LISTS)
def test_a_list_without_graphs_or_of_graphs_that_are_needed_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS_LISTS[program])
