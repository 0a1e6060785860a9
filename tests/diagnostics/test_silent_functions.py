"""The user's own code inside autograd, without a complaint and with a wrong gradient: hooks, Functions, checkpoints."""

from __future__ import annotations

import pytest
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

FOUND = {
    "hooks in a function": (
        "saved-tensor-hooks-disable-version-check",
        """
        import torch

        def forward(h):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, 1), lambda p: p[0]):  # mode_entered_here
                return h.sigmoid() * h  # saved_here

        x = torch.ones(3, requires_grad=True)
        h = x * 1
        y = forward(h)
        h += 1  # modified_here
        y.sum().backward()  # needed_here
        """,
    ),
    "a hook of a module in a checkpoint": (
        "checkpoint-disables-version-check",
        """
        import torch
        from torch import nn
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)

        class Norm(nn.Module):
            def forward(self, x):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))  # saved_here

        def dampen(module, args, output):
            args[0].mul_(0.9)  # modified_here

        first, norm, second = nn.Linear(4, 4), Norm(), nn.Linear(4, 4)
        norm.register_forward_hook(dampen)

        def block(x):
            h = x + first(x)
            return h + second(norm(h))

        for step in range(2):
            out = checkpoint(block, torch.randn(2, 4), use_reentrant=False)  # called_here
            out.square().sum().backward()  # needed_here
        """,
    ),
    "one value of many, in a checkpoint inside a checkpoint": (
        "checkpoint-disables-version-check",
        """
        import torch
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        w = torch.randn(100, 100, requires_grad=True)

        def inner(x):
            h = x * 2
            y = h.exp() * h  # saved_here
            h[3, 17] = 0.0  # modified_here
            return y + h.sin()

        def outer(x):
            return checkpoint(inner, x.cos(), use_reentrant=False)  # called_here

        checkpoint(outer, w, use_reentrant=False).sum().backward()  # needed_here
        """,
    ),
    "an attribute of an object": (
        "checkpoint-recomputes-with-changed-state",
        """
        import torch
        from torch.utils.checkpoint import checkpoint

        class Block:
            def __init__(self):
                self.scale = 1.0

            def __call__(self, x):
                return (x * self.scale).tanh()

        block = Block()
        run = block.__call__
        x = torch.ones(3, requires_grad=True)
        y = checkpoint(run, x, use_reentrant=False)  # called_here
        block.scale = 3.0  # state_changed_here
        y.sum().backward()  # needed_here
        """,
    ),
    "an attribute of what is called": (
        "checkpoint-recomputes-with-changed-state",
        """
        import torch
        from torch.utils.checkpoint import checkpoint

        class Block:
            def __init__(self):
                self.scale = 1.0

            def __call__(self, x):
                return (x * self.scale).tanh()

        block = Block()
        x = torch.ones(3, requires_grad=True)
        y = checkpoint(block, x, use_reentrant=False)  # called_here
        block.scale = 3.0  # state_changed_here
        y.sum().backward()  # needed_here
        """,
    ),
    "a parameter, by an optimizer": (
        "checkpoint-recomputes-with-changed-state",
        """
        import torch
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
        x = torch.ones(1, 2, requires_grad=True)
        y = checkpoint(lambda t: net(t).tanh(), x, use_reentrant=False).sum()  # called_here
        net(x).sum().backward()
        optimizer.step()  # state_changed_here
        y.backward()  # needed_here
        """,
    ),
    "one None too many": (
        "custom-function-none-gradient",
        """
        import torch

        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight, power):
                ctx.save_for_backward(x, weight)
                return x * weight**power

            @staticmethod
            def backward(ctx, g):
                x, weight = ctx.saved_tensors
                if x.sum() > 100:
                    return g * weight, (g * x).sum(), None
                return g * weight, None, None  # returned_here

        x, weight = torch.ones(3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
        y = Scale.apply(x, weight, 1)
        y.sum().backward()  # needed_here
        """,
    ),
    "None for a value that is computed from a parameter": (
        "custom-function-none-gradient",
        """
        import torch

        class Force(torch.autograd.Function):
            @staticmethod
            def forward(ctx, height, stiffness, sharpness):
                ctx.save_for_backward(height, stiffness)
                return height * stiffness * sharpness

            @staticmethod
            def backward(ctx, g):
                height, stiffness = ctx.saved_tensors
                return g * stiffness, None, None  # returned_here

        height, log_stiffness = torch.ones(3, requires_grad=True), torch.zeros((), requires_grad=True)
        optimizer = torch.optim.SGD([height, log_stiffness], lr=0.1)
        for _ in range(2):
            loss = Force.apply(height, log_stiffness.exp(), 1.0).square().sum()
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
    ),
    "an integer gradient": (
        "custom-function-integer-gradient-truncated",
        """
        import torch

        class Half(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x / 2

            @staticmethod
            def backward(ctx, g):
                whole = (g / 2).to(torch.int64)
                return whole  # returned_here

        x = torch.ones(3, requires_grad=True)
        Half.apply(x).sum().backward()  # needed_here
        """,
    ),
    "an input changed, and used again": (
        "custom-function-unmarked-inplace",
        """
        import torch

        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.clamp_(max=1)  # modified_here
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2

        w = torch.full((3,), 2.0, requires_grad=True)
        h = w + 1
        y = Clip.apply(h)  # called_here
        (y + h).sum().backward()  # needed_here
        """,
    ),
    "another shape": (
        "data-swap-leaves-stale-gradient-shape",
        """
        import torch
        w = torch.ones(2, requires_grad=True)
        loss = (w * 3).sum()  # graph_built_here
        w.data = torch.ones(5)  # modified_here
        loss.backward()  # needed_here
        """,
    ),
}


@pytest.mark.parametrize("program", FOUND)
def test_a_wrong_gradient_of_the_users_own_code_is_found(program: str, run: Run) -> None:  # noqa: F811
    code, text = FOUND[program]
    expect(run, code, text)


HARMLESS = {
    "writes in a checkpoint before anything is saved": """
        import torch
        from torch.utils.checkpoint import checkpoint
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.5))
        def block(x):
            h = net(x)
            h += 1
            return h.mul_(2).tanh_()
        x = torch.ones(2, 3, requires_grad=True)
        for early in (True, False):
            with torch.utils.checkpoint.set_checkpoint_early_stop(early):
                out = checkpoint(block, x, use_reentrant=False)
            out.sum().backward(retain_graph=True)
            out.sum().backward()
        """,
    "writes in a checkpoint that leave every value as it is": """
        import torch
        from torch.utils.checkpoint import checkpoint
        def block(x):
            h = x * 2
            y = h.exp() * h
            h.clamp_(-100, 100)
            h[0] = h[0].clone()
            return y + h
        x = torch.randn(50, 50, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).sum().backward()
        """,
    "a checkpoint whose outputs are changed": """
        import torch
        from torch.utils.checkpoint import checkpoint
        net = torch.nn.Linear(3, 3)
        x = torch.ones(2, 3, requires_grad=True)
        for step in range(2):
            y = checkpoint(lambda x: net(x) + 1, x, use_reentrant=False)
            y.mul_(2)
            y.sum().backward()
            with torch.no_grad():
                for parameter in net.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
        """,
    "parameters stepped by hooks during a pass through checkpoints": """
        import torch
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        def step(parameter):
            with torch.no_grad():
                parameter -= 0.1 * parameter.grad
            parameter.grad = None
        for parameter in (*one.parameters(), *two.parameters()):
            parameter.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            h = checkpoint(lambda x: one(x).tanh(), torch.randn(2, 3), use_reentrant=False)
            checkpoint(lambda h: two(h).tanh(), h, use_reentrant=False).sum().backward()
        """,
    "hooks that copy": """
        import torch
        x = torch.ones(3, requires_grad=True)
        h = x * 1
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            loss = (h * h).sum()
        h.add_(1)
        loss.backward()
        """,
    "hooks, and nothing changed": """
        import torch
        net = torch.nn.Linear(3, 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            with torch.autograd.graph.save_on_cpu():
                loss = net(torch.ones(2, 3)).relu().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    "a checkpoint with dropout": """
        import torch
        from torch.utils.checkpoint import checkpoint
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        x = torch.ones(2, 4, requires_grad=True)
        for step in range(2):
            checkpoint(net, x, use_reentrant=False).sum().backward()
        """,
    "a counter that a checkpoint reads": """
        import torch
        from torch.utils.checkpoint import checkpoint
        runs = 0

        def block(x):
            global runs
            runs += 1
            return x.tanh()

        x = torch.ones(3, requires_grad=True)
        checkpoint(block, x, use_reentrant=False).sum().backward()
        """,
    "None for what needs none": """
        import torch

        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, mask, power):
                ctx.save_for_backward(mask)
                return x * mask**power

            @staticmethod
            def backward(ctx, g):
                (mask,) = ctx.saved_tensors
                return g * mask, None, None

        x = torch.ones(3, requires_grad=True)
        Scale.apply(x, torch.ones(3), 1).sum().backward()
        """,
    "None for a tensor in a list, which is no input": """
        import torch

        class Join(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, rest):
                return a + sum(t.detach() for t in rest)

            @staticmethod
            def backward(ctx, g):
                return g, None

        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        (Join.apply(a, [b]) + b).sum().backward()
        """,
    "marked dirty": """
        import torch

        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.clamp_(max=1)
                return x

            @staticmethod
            def backward(ctx, g):
                return torch.zeros_like(g)

        w = torch.full((3,), 2.0, requires_grad=True)
        h = w + 1
        y = Clip.apply(h)
        (y + h).sum().backward()
        """,
    "an input that is not used again": """
        import torch

        class Clip(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return g * 2

        w = torch.ones(3, requires_grad=True)
        Clip.apply(w + 1).sum().backward()
        """,
    "a new shape between steps": """
        import torch
        w = torch.ones(2, requires_grad=True)
        (w * 3).sum().backward()
        w.grad = None
        w.data = torch.ones(5)
        (w * 3).sum().backward()
        """,
}


@pytest.mark.parametrize("program", HARMLESS)
def test_what_does_no_harm_is_no_finding(program: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, HARMLESS[program])
