"""Checks calls that PyTorch rejects: the value is followed to its line, and similar errors are left alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.diagnostics import diagnose

# code: a program, its lines marked with the roles that they play
FOUND = {
    "a-number-passed-through-a-function": (
        "grad-output-not-iterable",
        """
        import torch
        def step(loss, scale):
            loss.backward(scale)  # needed_here
        weight = torch.ones(2, requires_grad=True)
        factor = 0.5  # value_made_here
        step(weight.sum(), factor)
        """,
    ),
    "a-list-written-out": (
        "grad-output-not-a-tensor",
        """
        import torch
        weight = torch.ones(2, requires_grad=True)
        (weight * 2).backward([1.0, 0.5])  # needed_here value_made_here
        """,
    ),
    "an-array-from-a-helper": (
        "set-data-not-a-tensor",
        """
        import numpy as np
        import torch
        def load():
            return np.zeros(2)
        weight = torch.ones(2, requires_grad=True)
        for _ in range(1):
            values = load()  # value_made_here
            weight.data = values  # rejected_here
        """,
    ),
    "modules-in-a-dict": (
        "optimizer-param-not-a-tensor",
        """
        import torch
        def build(layers, rate):
            return torch.optim.Adam(layers, lr=rate)  # optimizer_made_here
        rate = 0.1
        parts = (torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))  # value_made_here
        build(parts, rate)
        """,
    ),
    "second-call-of-two-optimizers": (
        "grad-scaler-call-order",
        """
        import torch
        one, two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        first = torch.optim.SGD(one.parameters(), lr=0.1)
        second = torch.optim.SGD(two.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(two(one(torch.ones(1, 2))).sum()).backward()
        scaler.unscale_(first)  # modified_here
        scaler.unscale_(second)
        scaler.unscale_(first)  # rejected_here
        """,
    ),
    "step-twice-without-update": (
        "grad-scaler-call-order",
        """
        import torch
        layer = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
            scaler.step(optimizer)  # modified_here rejected_here
        """,
    ),
    "a-head-replaced-after-the-optimizer": (
        "grad-scaler-no-inf-checks",
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Linear(2, 2)
                self.head = torch.nn.Linear(2, 2)
            def forward(self, x):
                return self.head(self.body(x))
        net = Net()
        for parameter in net.body.parameters():
            parameter.requires_grad_(False)
        optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)  # optimizer_made_here
        net.head = torch.nn.Linear(2, 1)  # replaced_here
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(net(torch.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)  # needed_here
        """,
    ),
    "weights-tied-in-a-constructor": (
        "duplicate-parameter-in-group",
        """
        import torch
        class Tied(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = torch.nn.Embedding(4, 2)
                self.out = torch.nn.Linear(2, 4, bias=False)
                self.out.weight = self.embed.weight  # shared_here
        net = Tied()
        every = [*net.embed.parameters(), *net.out.parameters()]
        torch.optim.SGD(every, lr=0.1)  # optimizer_made_here
        """,
    ),
    "two-optimizers-one-sparse": (
        "sparse-gradient-unsupported",
        """
        import torch
        table = torch.nn.Embedding(4, 2, sparse=True)
        head = torch.nn.Linear(2, 1)
        wrong = torch.optim.Adam(table.parameters())  # optimizer_made_here
        right = torch.optim.Adam(head.parameters())
        hidden = table(torch.tensor([1, 2]))  # graph_built_here
        head(hidden).sum().backward()
        right.step()
        wrong.step()  # needed_here
        """,
    ),
    "detached-by-a-later-step": (
        "saved-tensor-detached-inplace",
        """
        import torch
        weight = torch.ones(3, requires_grad=True)
        state = weight * 2
        losses = []
        for _ in range(1):
            losses.append((state * state).sum())  # saved_here
            state.detach_()  # modified_here
        losses[0].backward()  # needed_here
        """,
    ),
    "moved-by-set": (
        "backward-after-data-swap",
        """
        import torch
        layer = torch.nn.Linear(3, 2)
        loss = layer(torch.ones(4, 3, requires_grad=True)).sum()  # saved_here
        layer.weight.data = torch.zeros(5, 7)  # modified_here
        loss.backward()  # needed_here
        """,
    ),
    "walking-up-from-a-leaf": (
        "grad-fn-is-none",
        """
        import torch
        def names(tensor):
            return [node[0].name() for node in tensor.grad_fn.next_functions]  # needed_here
        weight = torch.ones(3, requires_grad=True)  # leaf_made_here
        names(weight)
        """,
    ),
    "recording-was-off": (
        "grad-fn-is-none",
        """
        import torch
        layer = torch.nn.Linear(2, 1)
        with torch.no_grad():  # grad_mode_off_here
            out = layer(torch.ones(1, 2))  # graph_cut_here
        print(out.grad_fn.name())  # needed_here
        """,
    ),
    "an-uncalled-mode-under-another-name": (
        "grad-mode-used-without-call",
        """
        import torch
        from torch import inference_mode as frozen
        def evaluate(layer):
            with frozen:  # rejected_here
                return layer(torch.ones(1, 2))
        evaluate(torch.nn.Linear(2, 1))
        """,
    ),
    "the-first-of-a-mean": (
        "index-zero-dim-loss",
        """
        import torch
        criterion = torch.nn.MSELoss()
        out = torch.nn.Linear(2, 1)(torch.ones(1, 2))
        loss = criterion(out, torch.zeros(1, 1))  # value_made_here
        total = 0.0
        total += loss[0]  # rejected_here
        """,
    ),
    "a-second-derivative-of-attention": (
        "derivative-for-operator-not-implemented",
        """
        import torch
        layer = torch.nn.Linear(4, 4)
        x = torch.ones(1, 1, 3, 4, requires_grad=True)
        q = layer(x)
        out = torch.nn.functional.scaled_dot_product_attention(q, q, q)  # graph_built_here
        score = (out * out).sum()
        (gradient,) = torch.autograd.grad(score, x, create_graph=True)
        penalty = gradient.square().sum()
        penalty.backward()  # needed_here
        """,
    ),
    "a-weight-of-a-loss-that-trains": (
        "argument-not-differentiable",
        """
        import torch
        layer = torch.nn.Linear(2, 3)
        log_weight = torch.zeros(3, requires_grad=True)  # leaf_made_here
        weight = log_weight.exp()
        out = layer(torch.ones(1, 2))
        torch.nn.functional.cross_entropy(out, torch.tensor([1]), weight)  # rejected_here
        """,
    ),
    "a-flattened-gradient": (
        "grad-shape-mismatch",
        """
        import torch
        net = torch.nn.Linear(2, 3)  # leaf_made_here
        net(torch.ones(1, 2)).sum().backward()
        flat = net.weight.grad.flatten()  # value_made_here
        net.weight.grad = flat  # rejected_here
        """,
    ),
    "a-permuted-batch": (
        "view-size-incompatible",
        """
        import torch
        class Head(torch.nn.Module):
            def forward(self, x):
                x = x.permute(0, 2, 1)  # view_made_here
                return x.view(x.size(0), -1)  # rejected_here
        Head()(torch.ones(2, 3, 4, requires_grad=True))
        """,
    ),
    "a-row-of-an-unbound-tensor": (
        "detach-view-inplace",
        """
        import torch
        x = torch.ones(2, 3, requires_grad=True) * 2
        first, second = x.unbind(0)  # view_made_here
        first.detach_()  # rejected_here
        """,
    ),
    "a-generator-counted-first": (
        "clip-grad-empty-generator",
        """
        import torch
        net = torch.nn.Linear(2, 1)
        trainable = (p for p in net.parameters() if p.requires_grad)
        print(sum(p.numel() for p in trainable))  # value_made_here
        net(torch.ones(1, 2)).sum().backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)  # rejected_here
        """,
    ),
    "a-converted-model": (
        "grad-scaler-fp16-gradients",
        """
        import torch
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        net = net.to(torch.float16)  # leaf_made_here
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(net(torch.ones(1, 2).half()).sum()).backward()
        scaler.unscale_(opt)  # needed_here
        """,
    ),
    "a-lazy-layer-initialised": (
        "lazy-parameter-uninitialized",
        """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.LazyLinear(3)  # leaf_made_here
        net = Net()
        torch.nn.init.normal_(net.fc.weight)  # rejected_here
        """,
    ),
    "memory-of-an-array-in-an-object": (
        "storage-not-resizable",
        """
        import numpy as np
        import torch
        class Data:
            def __init__(self):
                self.t = torch.as_tensor(np.ones(3))  # shared_here
        d = Data()
        d.t.resize_(8)  # rejected_here
        """,
    ),
    "names-for-parameters": (
        "optimizer-param-not-a-tensor",
        """
        import torch
        net = torch.nn.Linear(2, 1)
        params = [n for n, p in net.named_parameters()]  # value_made_here
        torch.optim.SGD(params, lr=0.1)  # optimizer_made_here
        """,
    ),
    "a-filter-that-leaves-nothing": (
        "empty-inputs",
        """
        import torch
        net = torch.nn.Linear(2, 1)
        def grads(loss, params):
            return torch.autograd.grad(loss, params)  # needed_here
        picked = [p for n, p in net.named_parameters() if "norm" in n]  # value_made_here
        grads(net(torch.ones(1, 2)).sum(), picked)
        """,
    ),
    "frozen-one-by-one": (
        "ddp-no-trainable-parameters",
        """
        import tempfile, torch
        import torch.distributed as dist
        dist.init_process_group("gloo", store=dist.FileStore(tempfile.mktemp(), 1), rank=0, world_size=1)
        net = torch.nn.Linear(2, 1)
        for p in net.parameters():
            p.requires_grad = False  # leaf_made_here
        torch.nn.parallel.DistributedDataParallel(net)  # rejected_here
        """,
    ),
    "a-gradient-in-half-precision": (
        "grad-dtype-mismatch",
        """
        import torch
        params = [torch.nn.Parameter(torch.ones(2))]  # leaf_made_here
        for p in params:
            g = torch.zeros(2).half()  # value_made_here
            p.grad = g  # rejected_here
        """,
    ),
    "a-plain-tensor-registered": (
        "register-tensor-as-parameter",
        """
        import torch
        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                init = torch.zeros(3)  # value_made_here
                self.register_parameter("b", init)  # rejected_here
        M()
        """,
    ),
}

# Errors of other causes whose messages look the same: none of these codes may be claimed.
UNRELATED = {
    "an-attribute-of-none": "import torch\nx = torch.ones(2, requires_grad=True)\nprint((x * 2).grad_fn)\nNone.name",
    "the-end-of-a-graph": (
        "import torch\nx = torch.ones(2, requires_grad=True)\nnode = (x * 2).sum()\n"
        "print(node.grad_fn.next_functions[0][0].missing)"
    ),
    "a-class-entered": "import torch\nwith int:\n    torch.ones(1)",
    "a-class-of-the-users-own": "import torch\nclass Mode:\n    pass\nwith Mode:\n    torch.ones(1)",
    "sizes-in-forward": "import torch\ntorch.ones(3) + torch.ones(4)",
    "sizes-in-a-hook": (
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.register_hook(lambda g: g + torch.ones(4))\n"
        "x.data = torch.ones(3)\ny.sum().backward()"
    ),
    "a-number-is-walked": "import torch\nx = torch.ones(3, requires_grad=True)\nlist(3.5)",
}


def written(folder: Path, text: str) -> Path:
    script = folder / "program.py"
    indent = re.match(r"\n( *)", text)
    script.write_text(text.replace(indent[0], "", 1).replace("\n" + indent[1], "\n") if indent else text)
    return script


def marked(script: Path) -> dict[str, set[int]]:
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(script.read_text().splitlines(), 1):
        for role in re.findall(r"\w+_here", line.partition("  # ")[2]):
            lines.setdefault(role, set()).add(number)
    return lines


@pytest.mark.parametrize("name", FOUND)
def test_the_refused_thing_is_followed_to_its_line(name: str, warm: Warm, tmp_path: Path) -> None:
    code, text = FOUND[name]
    script = written(tmp_path, text)
    _, trace = warm.traced(script)
    found = [finding for finding in diagnose(trace) if finding.severity != "note"]
    assert [finding.code for finding in found] == [code]
    lines: dict[str, set[int]] = {}
    for label in found[0].labels:
        lines.setdefault(label.role, set()).add(label.span.line)
    assert lines == marked(script)


@pytest.mark.parametrize("name", UNRELATED)
def test_the_same_words_of_another_cause_are_not_claimed(name: str, warm: Warm, tmp_path: Path) -> None:
    _, trace = warm.traced(written(tmp_path, UNRELATED[name]))
    assert [finding.code for finding in diagnose(trace) if finding.severity == "error"] == ["uncaught-exception"]


REBOUND = {
    "by-an-update": ("w = w - 0.1 * w.grad", "update the leaf in place: `with torch.no_grad(): w -= 0.1 * w.grad`"),
    "by-a-conversion": ("w = w.double()", "give the result another name, so that `w` stays the leaf"),
    "of-a-part-in-a-dict": ('p["w"] = p["w"] * 2', ""),
    "under-a-new-name": ("v = w * 2", ""),
}


@pytest.mark.parametrize("name", REBOUND)
def test_the_line_that_gave_a_leafs_name_to_a_result_is_named(name: str, warm: Warm, tmp_path: Path) -> None:
    statement, advice = REBOUND[name]
    read = statement.partition(" = ")[0]
    script = tmp_path / "script.py"
    script.write_text(
        'import torch\nw = torch.ones(2, requires_grad=True); p = {"w": w}\n(w * w).sum().backward()\n'
        f"{statement}\n({read} * 3).sum().backward()\nprint({read}.grad)\n"
    )
    _, trace = warm.traced(script)
    (found,) = [finding for finding in diagnose(trace) if finding.code == "nonleaf-grad-access"]
    helps = [fix.title for fix in found.fixes]
    if advice:
        assert found.explanation.startswith("line 4 gave the name `w` of the leaf from line 2 to a result")
        assert helps[0] == advice
        assert [fix.place.line for fix in found.fixes if fix.place is not None] == [4] * len(helps)
        assert "retain_grad" not in " ".join(helps)
    else:
        assert "gave the name" not in found.explanation
        assert "retain_grad" in helps[0]


def test_a_help_names_the_line_of_its_role(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nwith torch.inference_mode():\n    average = torch.zeros(3)\naverage.add_(1.0)\n",
        encoding="utf-8",
    )
    (found,) = diagnose(warm.traced(script)[1])
    assert found.code == "inference-tensor-inplace"
    assert [None if fix.place is None else fix.place.line for fix in found.fixes] == [2, 4]


def test_a_label_marks_the_line_that_begins_a_block_not_the_block(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\nwith (\n    torch.inference_mode(),\n):  # off\n    a = torch.zeros(3)\n\n"
        "    b = a + 1\nb.add_(1)\n"
    )
    (found,) = diagnose(warm.traced(script)[1])
    (begins,) = [label.span for label in found.labels if label.role == "mode_entered_here"]
    assert (begins.line, begins.end_line) == (2, 3)
