"""Mistakes in the bookkeeping of training: found with their lines where the run shows harm, else left alone."""

from __future__ import annotations

import pytest
from support.silent import Run, expect, expect_nothing, run  # noqa: F401

from tensorlens.diagnostics import diagnose

HARM = {
    ("state-dict-aliases-parameters", "the model before and after is compared"): """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def weights():
            return net.state_dict()  # shared_here

        old = weights()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()  # observed_here
        new = weights()
        moved = [(new[name] - old[name]).norm().item() for name in new]  # needed_here
        """,
    ("parameters-iterator-used-up", "a helper that returns a filter"): """
        import torch
        from torch.nn.utils import clip_grad_norm_
        net = torch.nn.Linear(2, 1)
        net.bias.requires_grad_(False)

        def unfrozen(module):
            return filter(lambda p: p.requires_grad, module.parameters())

        weights = unfrozen(net)  # value_made_here
        optimizer = torch.optim.Adam(weights, lr=0.1)  # optimizer_made_here
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            clip_grad_norm_(weights, 0.1)  # rejected_here
            optimizer.step()  # needed_here
        """,
    ("parameters-iterator-used-up", "an argument: a list at first, then a filter"): """
        import torch
        from torch.nn.utils import clip_grad_norm_

        def fit(net, weights, steps):
            optimizer = torch.optim.SGD(weights, lr=0.1)  # optimizer_made_here
            for _ in range(steps):
                optimizer.zero_grad()
                net(torch.ones(1, 2)).sum().backward()
                clip_grad_norm_(weights, 0.1)  # rejected_here
                optimizer.step()  # needed_here

        net = torch.nn.Linear(2, 1)
        fit(net, list(net.parameters()), 2)
        net.bias.requires_grad_(False)
        trained = filter(lambda p: p.requires_grad, net.parameters())  # value_made_here
        fit(net, trained, steps=2)
        """,
    ("parameters-iterator-used-up", "parameters that a method is given"): """
        import torch
        from torch.nn.utils import clip_grad_norm_

        class Trainer:
            def fit(self, net, weights):
                optimizer = torch.optim.SGD(weights, lr=0.1)  # optimizer_made_here
                net(torch.ones(1, 2)).sum().backward()
                clip_grad_norm_(weights, 0.1)  # rejected_here
                optimizer.step()  # needed_here

        net = torch.nn.Linear(2, 1)
        Trainer().fit(net, weights=net.parameters())  # value_made_here
        """,
    ("parameters-iterator-used-up", "a function called train, and a class method"): """
        import torch
        from torch.nn.utils import clip_grad_norm_

        class Net(torch.nn.Linear):
            @classmethod
            def train_one(cls, net, weights):
                optimizer = torch.optim.SGD(weights, lr=0.1)  # optimizer_made_here
                net.train()
                net(torch.ones(1, 2)).sum().backward()
                clip_grad_norm_(weights, 0.1)  # rejected_here
                optimizer.step()  # needed_here

        net = Net(2, 1)
        Net.train_one(net, (p for p in net.parameters()))  # value_made_here
        """,
    ("state-dict-aliases-parameters", "weights that are put back after an evaluation"): """
        import torch
        net, average = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        backup = net.state_dict()  # shared_here
        net.load_state_dict(average.state_dict())  # modified_here
        net.load_state_dict(backup)  # needed_here
        """,
    ("gradient-accumulates-without-zero-grad", "a loop that zeroes another optimizer"): """
        import torch
        net, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(net.parameters())
        wrong = torch.optim.Adam(other.parameters())
        for _ in range(2):
            wrong.zero_grad()
            loss = net(torch.ones(1, 2)).sum()
            loss.backward()  # accumulated_here
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()  # needed_here
        """,
    ("gradient-accumulates-without-zero-grad", "updates by hand"): """
        import torch
        w = torch.ones(2, requires_grad=True)
        for _ in range(3):
            (w * w).sum().backward()  # accumulated_here
            with torch.no_grad():
                w -= 0.1 * w.grad  # needed_here
        """,
    ("zero-grad-after-backward", "a helper that clears in place"): """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def reset(module):
            for p in module.parameters():
                p.grad.zero_()  # cleared_here

        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()  # needed_here
            reset(net)
            optimizer.step()  # rejected_here
        """,
    ("zero-grad-after-backward", "a step before backward"): """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()  # cleared_here
            loss = net(torch.ones(1, 2)).sum()
            optimizer.step()  # rejected_here
            loss.backward()  # needed_here
        """,
    ("backward-not-called", "behind a condition"): """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(net.parameters())
        for step in range(3):
            loss = net(torch.ones(1, 2)).sum()  # graph_built_here
            if step > 5:
                loss.backward()
            optimizer.step()  # rejected_here
        """,
    ("backward-not-called", "for another network"): """
        import torch
        old, net = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(old.parameters())  # optimizer_made_here
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()  # needed_here
            optimizer.step()  # rejected_here
        """,
    ("zero-grad-after-backward", "parts of a batch"): """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for part in range(6):
            optimizer.zero_grad()  # cleared_here
            (net(torch.ones(1, 2)).square().sum() / 3).backward()  # needed_here
            if part % 3 == 2:
                optimizer.step()  # rejected_here
        """,
    ("optimizer-step-not-called", "one of two, behind a condition"): """
        import torch
        net, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam(net.parameters())  # optimizer_made_here
        second = torch.optim.SGD(other.parameters(), lr=0.1)
        for step in range(4):
            loss = net(torch.ones(1, 2)).sum() + other(torch.ones(1, 2)).sum()
            loss.backward()  # needed_here
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            if step > 5:
                optimizer.step()
            second.step()
            optimizer.zero_grad()  # cleared_here
            second.zero_grad()
        """,
    ("detached-loss-made-to-require-grad", "a loss made anew from its number"): """
        import torch
        net = torch.nn.Linear(2, 1)  # leaf_made_here
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            value = net(torch.ones(1, 2)).sum().item()  # graph_cut_here
            loss = torch.tensor(value, requires_grad=True)  # replaced_here
            loss.backward()  # needed_here
            optimizer.step()
        """,
    ("branch-detached", "an encoder whose code is made anew"): """
        import torch
        encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)  # leaf_made_here
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])  # optimizer_made_here
        x = torch.ones(4, 3)
        for _ in range(2):
            code = encoder(x)
            code = torch.stack([row.detach() for row in code])  # graph_cut_here
            loss = (decoder(code) - x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
    ("branch-detached", "required too late"): """
        import torch
        net = torch.nn.Linear(2, 2)
        shift = torch.zeros(2)  # leaf_made_here
        hidden = net(torch.ones(1, 2)) + shift  # graph_cut_here
        shift.requires_grad_()
        optimizer = torch.optim.SGD([*net.parameters(), shift], lr=0.1)  # optimizer_made_here
        hidden.sum().backward()  # needed_here
        optimizer.step()
        """,
    ("parameter-built-from-nonleaf", "a network that makes weights"): """
        import torch
        hyper = torch.nn.Linear(1, 2)  # leaf_made_here
        layer = torch.nn.Linear(2, 1, bias=False)
        layer.weight = torch.nn.Parameter(hyper(torch.ones(1, 1)))  # graph_cut_here
        optimizer = torch.optim.SGD([*hyper.parameters(), *layer.parameters()], lr=0.1)  # optimizer_made_here
        layer(torch.ones(1, 2)).sum().backward()  # needed_here
        optimizer.step()
        """,
    ("optimizer-holds-replaced-parameter", "a head for another task"): """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk = torch.nn.Linear(2, 2)
                self.head = torch.nn.Linear(2, 1)

            def forward(self, x):
                return self.head(self.trunk(x))

        def widen(net):
            new = torch.nn.Linear(2, 5)
            net.head = new  # replaced_here

        net = Net()
        optimizer = torch.optim.Adam(net.parameters())  # optimizer_made_here
        widen(net)
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()  # needed_here
            net.zero_grad()
        """,
    ("parameter-not-registered", "layers in a dictionary"): """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.shared = torch.nn.Linear(2, 2)
                self.heads = {"a": torch.nn.Linear(2, 1)}  # leaf_made_here

            def forward(self, x):
                return self.heads["a"](self.shared(x))

        net = Net()
        optimizer = torch.optim.Adam(net.parameters())  # optimizer_made_here
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()  # needed_here
        """,
    ("frozen-parameter-still-updated", "by momentum in a group"): """
        import torch
        a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1, momentum=0.9)
        x = torch.ones(1, 2)
        b(a(x)).sum().backward()  # accumulated_here
        optimizer.step()
        for p in a.parameters():
            p.requires_grad = False  # flag_changed_here
        optimizer.zero_grad(set_to_none=False)
        b(a(x)).sum().backward()
        optimizer.step()  # needed_here
        """,
    ("frozen-parameter-still-updated", "by weight decay, with a gradient set by hand"): """
        import torch
        a, b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        optimizer = torch.optim.AdamW([*a.parameters(), *b.parameters()], lr=0.1, weight_decay=0.5)
        for p in a.parameters():
            p.grad = torch.zeros_like(p)  # accumulated_here
            p.requires_grad_(False)  # flag_changed_here
        b(a(torch.ones(1, 2))).sum().backward()
        optimizer.step()  # needed_here
        """,
    ("branch-detached", "through a constant to NumPy and back"): """
        import torch
        encoder, decoder = torch.nn.Linear(4, 4), torch.nn.Linear(2, 1)  # leaf_made_here
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)  # optimizer_made_here
        for step in range(2):
            code = torch.relu(encoder(torch.ones(3, 4)))
            array = code.detach().numpy()  # graph_cut_here
            pooled = (array[:, :2] + array[:, 2:]) / 2
            loss = decoder(torch.from_numpy(pooled)).square().sum()
            loss.backward()  # needed_here
            optimizer.step()
            optimizer.zero_grad()
        """,
    ("branch-detached", "a loss that is logged, and not added"): """
        import torch
        trunk, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)  # leaf_made_here
        optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.1)  # optimizer_made_here
        for step in range(2):
            h = trunk(torch.ones(3, 4))
            extra = head(h).square().mean()  # graph_cut_here
            print(extra.detach().numpy())
            h.square().sum().backward()  # needed_here
            optimizer.step()
            optimizer.zero_grad()
        """,
    ("detached-loss-made-to-require-grad", "a loss made under no_grad"): """
        import torch
        net = torch.nn.Linear(2, 1)  # leaf_made_here
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with torch.no_grad():  # grad_mode_off_here
            loss = net(torch.ones(1, 2)).sum()  # graph_cut_here
        loss.requires_grad = True  # replaced_here
        loss.backward()  # needed_here
        """,
    ("update-rebinds-loop-variable", "a missing underscore"): """
        import torch
        params = [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)]  # leaf_made_here
        (params[0] * params[1]).sum().backward()
        with torch.no_grad():
            for p in params:
                p = p.sub(0.1 * p.grad)  # replaced_here
        """,
    ("update-rebinds-loop-variable", "an update of a detached tensor"): """
        import torch
        w, b = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)  # leaf_made_here
        for step in range(2):
            (w * b).sum().backward()
            for p in (w, b):
                p = p.detach() - 0.1 * p.grad  # replaced_here
            w.grad = b.grad = None
        """,
    ("update-rebinds-loop-variable", "gradients that were asked for"): """
        import torch
        params = dict(w=torch.ones(2, requires_grad=True), b=torch.ones(1, requires_grad=True))  # leaf_made_here
        for step in range(2):
            loss = (params["w"] * params["b"]).sum()
            for p, g in zip(params.values(), torch.autograd.grad(loss, list(params.values()))):
                p = p - 0.1 * g  # replaced_here
        """,
    ("update-rebinds-loop-variable", "an average that goes nowhere"): """
        import copy, torch
        student = torch.nn.Linear(2, 1)
        teacher = copy.deepcopy(student)  # leaf_made_here
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for step in range(2):
            loss = (student(torch.ones(1, 2)) - teacher(torch.ones(1, 2)).detach() - 1).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for t, s in zip(teacher.parameters(), student.parameters()):
                t = t * 0.9 + s * 0.1  # replaced_here
        """,
    ("branch-detached", "values that leave torch"): """
        import torch
        policy, value = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)  # leaf_made_here
        optimizer = torch.optim.SGD([*policy.parameters(), *value.parameters()], lr=0.1)  # optimizer_made_here
        for step in range(2):
            baseline = value(torch.ones(1, 2)).item()  # graph_cut_here
            loss = (policy(torch.ones(1, 2)) - baseline).square().sum()
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
    ("branch-detached", "a loss that is not added"): """
        import torch
        main, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)  # leaf_made_here
        optimizer = torch.optim.SGD([*main.parameters(), *other.parameters()], lr=0.1)  # optimizer_made_here
        for step in range(2):
            extra = other(torch.ones(1, 2)).square().sum()  # graph_cut_here
            loss = main(torch.ones(1, 2)).square().sum()
            optimizer.zero_grad()
            loss.backward()  # needed_here
            optimizer.step()
        """,
}

HOOKED = """
        import torch
        from torch import nn
        torch.manual_seed(0)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
            def forward(self, x):
                return self.head(self.trunk(x).tanh())
        net, taken = Net(), []
        net.trunk.register_forward_hook(lambda module, args, output: taken.append(output))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        for step in range(2):
            x = torch.randn(8, 4)
            _ = net(x)
            loss = taken.pop().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
HARMLESS = {
    "a list by a function, and gradients that are set after the clipping": """
        import torch
        net = torch.nn.Linear(2, 1)

        def trained(module):
            return [p for p in module.parameters() if p.requires_grad]

        weights = trained(net)
        optimizer = torch.optim.SGD(weights, lr=0.1)
        for _ in range(2):
            gradients = torch.autograd.grad(net(torch.ones(1, 2)).sum(), weights)
            optimizer.zero_grad()
            torch.nn.utils.clip_grad_norm_(weights, 0.1)
            for p, g in zip(weights, gradients):
                p.grad = g
            optimizer.step()
        """,
    "two state dicts of which the first is a copy": """
        import copy, torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        old = copy.deepcopy(net.state_dict())
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        new = net.state_dict()
        again = net.state_dict()
        print([torch.equal(new[k], again[k]) for k in new], [(new[k] - old[k]).norm() for k in new])
        """,
    "clipping parameters that have no gradient in this round": """
        import torch
        net, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        trunk = net.requires_grad_(False)

        def listed(module):
            return [p for p in module.parameters()]

        weights = listed(trunk)
        optimizer = torch.optim.SGD(weights, lr=0.1)
        optimizer.add_param_group({"params": head.parameters()})
        for _ in range(2):
            optimizer.zero_grad()
            head(trunk(torch.ones(1, 2))).sum().backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
        """,
    "a class with a flag of its own": """
        import torch

        class Features(torch.nn.Module):
            def __init__(self, requires_grad):
                super().__init__()
                self.layer = torch.nn.Linear(2, 2)
                self.requires_grad = requires_grad

            def forward(self, x):
                with torch.set_grad_enabled(self.requires_grad):
                    return self.layer(x)

        trunk, head = Features(False), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            head(trunk(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        """,
    "a state dict of which a part was replaced": """
        import torch
        net, other = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        kept = net.state_dict()
        net(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        kept["bias"] = other.bias
        net.load_state_dict(kept)
        """,
    "a state dict that is loaded at once": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            net.load_state_dict(net.state_dict())
        """,
    "a critic whose optimizer waits for another phase": """
        import torch
        critic, generator = torch.nn.Linear(2, 1), torch.nn.Linear(3, 2)
        for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
        for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
        for _ in range(4):
            for_generator.zero_grad()
            critic(generator(torch.ones(1, 3))).sum().backward()
            for_generator.step()
        """,
    "gradients of the input alone": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        maps = []
        for _ in range(4):
            optimizer.zero_grad()
            x = torch.ones(1, 2, requires_grad=True)
            net(x).sum().backward()
            maps.append(x.grad.abs())
        """,
    "a network run for what a hook takes, assigned to an underscore": HOOKED,
    "a network run for what a hook takes, a statement of its own": HOOKED.replace("_ = net", "net"),
    "a network run for what a hook takes, assigned to a name that nothing reads": HOOKED.replace(
        "_ = net", "result = net"
    ),
    "an average that is loaded": """
        import copy, torch
        student = torch.nn.Linear(2, 1)
        teacher = copy.deepcopy(student)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            (student(torch.ones(1, 2)) - teacher(torch.ones(1, 2)).detach() - 1).square().sum().backward()
            optimizer.step()
            average = {}
            for (name, t), s in zip(teacher.named_parameters(), student.parameters()):
                t = t * 0.9 + s * 0.1
                average[name] = t
            teacher.load_state_dict(average)
        """,
    "a gradient thrown away on purpose": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            if step == 1:
                optimizer.zero_grad()
                continue
            optimizer.step()
        """,
    "a learning-rate schedule without training": """
        import torch
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for _ in range(3):
            optimizer.step()
            schedule.step()
        """,
    "only the head is trained": """
        import torch
        trunk, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            head(trunk(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        """,
    "gradients that decay": """
        import torch
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(3):
            (w * w).sum().backward()
            optimizer.step()
            w.grad.mul_(0.5)
        """,
    "a teacher hidden in a list": """
        import torch

        class Student(torch.nn.Module):
            def __init__(self, teacher):
                super().__init__()
                self.layer = torch.nn.Linear(2, 2)
                self.teacher = [teacher]

            def forward(self, x):
                with torch.no_grad():
                    goal = self.teacher[0](x)
                return (self.layer(x) - goal).pow(2).mean()

        student = Student(torch.nn.Linear(2, 2))
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            student(torch.ones(1, 2)).backward()
            optimizer.step()
        """,
    "steps that are looked at and not taken": """
        import torch
        w = torch.ones(2, requires_grad=True)
        for rate in (0.1, 0.2):
            (g,) = torch.autograd.grad((w * w).sum(), [w])
            tried = w - rate * g
            print((tried * tried).sum().item())
        """,
    "adapted weights whose last step nothing uses": """
        import torch
        w = torch.ones(2, requires_grad=True)
        fast = w
        for step in range(2):
            (g,) = torch.autograd.grad((fast * fast).sum(), [fast], create_graph=True)
            fast = fast - 0.1 * g
        """,
    "a rest of a batch that is left out": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            optimizer.zero_grad()
            for part in range(8):
                (net(torch.ones(1, 2)).square().sum() / 3).backward()
                if part % 3 == 2:
                    optimizer.step()
                    optimizer.zero_grad()
        """,
    "one helper for two losses": """
        import torch
        maker, critic = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        first = torch.optim.SGD(maker.parameters(), lr=0.1)
        second = torch.optim.SGD(critic.parameters(), lr=0.1)

        def improve(loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        for step in range(4):
            made = maker(torch.ones(1, 2))
            improve(critic(made).sum(), first)
            improve((critic(made.detach()) - critic(torch.ones(1, 2))).sum(), second)
        """,
    "the gradient of each task, kept": """
        import torch
        net = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(3):
            kept = []
            for loss in net(torch.ones(1, 2)).square().unbind(1):
                optimizer.zero_grad()
                loss.sum().backward(retain_graph=True)
                kept.append([p.grad.clone() for p in net.parameters()])
            for p, *parts in zip(net.parameters(), *kept):
                p.grad = torch.stack(parts).mean(0)
            optimizer.step()
        """,
    "a line search": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=6, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = (net(torch.tensor([[1.0, 2.0], [0.5, -1.0]])) - 1).pow(4).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        """,
    "gradients that are looked at": """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for sample in torch.eye(2).repeat(3, 1):
            optimizer.zero_grad()
            net(sample).square().sum().backward()
            print(sum(p.grad.norm().item() for p in net.parameters()) >= 0)
        """,
    "an optimizer that only clears": """
        import torch
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            w.square().sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad.sign()
        """,
    "an optimizer inside another": """
        import torch

        class Twice(torch.optim.Optimizer):
            def __init__(self, inner):
                super().__init__(inner.param_groups, {})
                self.inner = inner

            def move(self):
                self.inner.step()
                self.inner.step()

        w = torch.ones(2, requires_grad=True)
        optimizer = Twice(torch.optim.SGD([w], lr=0.1))
        for _ in range(4):
            optimizer.zero_grad()
            w.square().sum().backward()
            optimizer.move()
        """,
    "batches that are skipped by their loss": """
        import torch
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.Adam(net.parameters())
        for step in range(8):
            x = torch.randn(4, 3) * (1 if step % 2 else 100)
            opt.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            if loss.item() > 50:
                continue  # an outlier: skip the update
            opt.step()
        """,
    "weights computed from the sum of all gradients": """
        import torch
        w = torch.zeros(3, requires_grad=True)
        for step in range(5):
            (w - torch.tensor([1., 2., 3.])).pow(2).sum().backward()
            with torch.no_grad():
                w.copy_(-0.1 * w.grad / (step + 1) ** 0.5)
        print(w)
        """,
    "an optimizer in a script that only prints gradient norms": """
        import torch
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.Adam(net.parameters())
        opt.load_state_dict(opt.state_dict())
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(4, 3)).pow(2).mean().backward()
            print(torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9).item())
        """,
    "a network that is kept away from parameters() on purpose": """
        import torch
        torch.manual_seed(0)
        vgg = torch.nn.Linear(3, 2)
        class Gen(torch.nn.Module):
            def __init__(self, feature_net):
                super().__init__()
                self.net = torch.nn.Linear(2, 3)
                self.feature_net = [feature_net]
            def forward(self, z, target):
                return (self.feature_net[0](self.net(z)) - self.feature_net[0](target)).pow(2).mean()
        gen = Gen(vgg)
        opt = torch.optim.Adam(gen.parameters())
        for _ in range(4):
            opt.zero_grad()
            gen(torch.randn(4, 2), torch.randn(4, 3)).backward()
            opt.step()
        """,
    "signs that are to pass gradients straight through": """
        import torch
        torch.manual_seed(0)
        lin1, lin2 = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
        opt = torch.optim.Adam([*lin1.parameters(), *lin2.parameters()])
        for _ in range(4):
            h = lin1(torch.randn(5, 3))
            h.data = h.data.sign()
            opt.zero_grad()
            lin2(h).pow(2).mean().backward()
            opt.step()
        """,
    "a step by hand whose result has the name": """
        import torch
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        loss = (w * w).sum()
        loss.backward()
        w = w - 0.1 * w.grad
        print(w)
        """,
    "an optimizer for each block of parameters": """
        import torch
        torch.manual_seed(0)
        a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
        oa, ob = torch.optim.SGD(a.parameters(), lr=.1), torch.optim.SGD(b.parameters(), lr=.1)
        def clear():
            for m in (a, b):
                for p in m.parameters(): p.grad = None
        for _ in range(3):
            for o in (oa, ob):
                clear()
                b(a(torch.randn(4, 3)).tanh()).pow(2).mean().backward()
                o.step()
        """,
    "an optimizer that needs no gradients": """
        import torch
        torch.manual_seed(0)

        class Evolution(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})

            def step(self, closure):
                for p in self.param_groups[0]["params"]:
                    with torch.no_grad():
                        old, before = p.clone(), closure()
                        p.add_(0.1 * torch.randn_like(p))
                        if closure() > before:
                            p.copy_(old)

        net = torch.nn.Linear(2, 1)
        optimizer = Evolution(net.parameters())
        print((net(torch.ones(4, 2)) - 3).square().mean())
        for _ in range(3):
            optimizer.step(lambda: (net(torch.ones(4, 2)) - 3).square().mean())
        """,
    "backward handed on as a function": """
        import torch
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            go = (w * w).sum().backward
            optimizer.zero_grad()
            go()
            optimizer.step()
        """,
}


@pytest.mark.parametrize(("code", "text"), [(code, text) for (code, _), text in HARM.items()], ids=map(" ".join, HARM))
def test_harm_is_found(code: str, text: str, run: Run) -> None:  # noqa: F811
    expect(run, code, text)


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_what_may_be_meant_is_left_alone(text: str, run: Run) -> None:  # noqa: F811
    expect_nothing(run, text)


def test_what_was_computed_without_a_record_is_told_once(run: Run) -> None:  # noqa: F811
    _, trace = run(
        """
        import torch
        encoder, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
        for step in range(2):
            with torch.no_grad():
                code = encoder(torch.ones(1, 2))
            optimizer.zero_grad()
            head(code).square().sum().backward()
            optimizer.step()
        """
    )
    (found,) = diagnose(trace)
    assert (found.code, found.severity) == ("branch-detached", "warning")


def test_a_parameter_that_nothing_was_computed_from_is_a_note(run: Run) -> None:  # noqa: F811
    trace = expect_nothing(
        run,
        """
        import torch
        used, unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.Adam([*used.parameters(), *unused.parameters()])
        for step in range(2):
            optimizer.zero_grad()
            used(torch.ones(1, 2)).square().sum().backward()
            optimizer.step()
        """,
    )
    (note,) = diagnose(trace)
    assert (note.code, note.severity) == ("branch-detached", "note")
    assert note.title == "no gradient ever reached `unused.weight` and `unused.bias`: no recorded operation uses them"
    assert {(label.role, label.span.line) for label in note.labels} == {
        ("leaf_made_here", 2),
        ("optimizer_made_here", 3),
        ("needed_here", 7),
    }


def test_an_optimizer_whose_gradients_a_program_writes_itself_may_hold_others(run: Run) -> None:  # noqa: F811
    trace = expect_nothing(
        run,
        """
        import copy, torch
        server = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.LayerNorm(1))
        optimizer, client = torch.optim.Adam(server.parameters()), copy.deepcopy(server)
        inner = torch.optim.SGD(client.parameters(), lr=0.1)
        for step in range(2):
            inner.zero_grad()
            client(torch.ones(1, 2)).square().sum().backward()
            inner.step()
            for p, q in zip(server[0].parameters(), client[0].parameters()):
                p.grad = p.detach() - q.detach()
            optimizer.step()
        """,
    )
    assert not diagnose(trace)


def test_a_result_that_nobody_adds_to_the_loss_is_a_warning_if_it_is_a_single_number(run: Run) -> None:  # noqa: F811
    text = next(text for name, text in HARMLESS.items() if name.endswith("assigned to a name that nothing reads"))
    _, trace = run(text.replace("loss = taken", "print(result.square().mean().shape); loss = taken"))
    assert [(d.code, d.severity) for d in diagnose(trace)] == [("branch-detached", "warning")]
    _, trace = run(text.replace("optimizer.step()", "optimizer.step(); print(result.shape)"))
    assert [(d.code, d.severity) for d in diagnose(trace)] == [("branch-detached", "note")]
    _, trace = run(text)
    assert [(d.code, d.severity) for d in diagnose(trace)] == [("branch-detached", "note")]


ADVERSARIAL = """
    import torch
    auto, critic = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    opt_auto = torch.optim.SGD(auto.parameters(), lr=0.1)
    opt_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
    for _ in range(2):
        opt_auto.zero_grad()
        code = auto(torch.ones(2, 3))
        critic(code).mean().backward()  # accumulated_here
        opt_auto.step()
        critic(code.detach()).square().mean().backward()
        opt_critic.step()  # needed_here
    """


def test_clearing_comes_after_the_pass_for_another_optimizer(run: Run) -> None:  # noqa: F811
    found = expect(run, "gradient-accumulates-without-zero-grad", ADVERSARIAL)
    (help_,) = found.fixes
    assert help_.place is not None
    assert help_.place.line == 10
    assert help_.title == ("call `opt_critic.zero_grad()` directly before this line: line 8 also fills these gradients")


def test_clearing_does_not_drop_gradients_that_are_to_add_up(run: Run) -> None:  # noqa: F811
    text = """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            for part in range(3):
                net(torch.ones(1, 2)).sum().backward()  # accumulated_here
            optimizer.step()  # needed_here
        """
    (help_,) = expect(run, "gradient-accumulates-without-zero-grad", text).fixes
    assert help_.place is not None
    assert help_.place.line == 7
    assert help_.title == "call `optimizer.zero_grad()` directly after this line: its gradients are used then"


def test_only_parameters_that_had_a_gradient_count_as_cleared(run: Run) -> None:  # noqa: F811
    text = """
        import torch
        net, spare = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*net.parameters(), *spare.parameters()], lr=0.1)
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()  # needed_here
            optimizer.zero_grad()  # cleared_here
            optimizer.step()  # rejected_here
        """
    found = expect(run, "zero-grad-after-backward", text)
    assert found.title.startswith("the gradients of `net.weight` and `net.bias` were cleared")
    assert found.explanation == "`optimizer.step()` found no gradient: what backward had computed was gone"
    assert [(fix.title, fix.place and fix.place.line) for fix in found.fixes] == [
        ("clear the gradients after line 7, which uses them", 6)
    ]


def test_a_step_before_backward_is_the_line_to_move(run: Run) -> None:  # noqa: F811
    (help_,) = expect(run, "zero-grad-after-backward", HARM["zero-grad-after-backward", "a step before backward"]).fixes
    assert help_.title == "move `optimizer.step()` below line 8, which computes the gradient"
    assert help_.place is not None
    assert help_.place.line == 7


def test_gradients_of_a_copy_are_named_as_the_cause(run: Run) -> None:  # noqa: F811
    text = """
        import copy, torch
        model = torch.nn.Linear(2, 1)
        outer = torch.optim.SGD(model.parameters(), lr=0.1)  # optimizer_made_here
        for _ in range(2):
            adapted = copy.deepcopy(model)  # replaced_here
            outer.zero_grad()
            adapted(torch.ones(1, 2)).sum().backward()  # accumulated_here
            outer.step()  # needed_here
        """
    found = expect(run, "optimizer-holds-replaced-parameter", text)
    assert found.title == "`outer.step()` finds no gradient: backward computed those of a copy"
    assert found.detail == ("the copy's parameters: `adapted.weight` and `adapted.bias`; 2 copies were made",)
    assert not any("make `outer`" in fix.title for fix in found.fixes)


def test_every_one_of_many_parameters_counts(run: Run) -> None:  # noqa: F811
    text = """
        import torch
        net = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4)))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()  # accumulated_here
            optimizer.step()  # needed_here
        """
    found = expect(run, "gradient-accumulates-without-zero-grad", text)
    assert "`net[0].weight`, `net[0].bias` and 6 more" in found.title


def test_an_optimizer_that_a_flag_keeps_from_stepping_is_a_note(run: Run) -> None:  # noqa: F811
    text = """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        def epoch(train):
            for _ in range(4):
                loss = net(torch.ones(1, 2)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                if train:
                    optimizer.step()
        epoch(False)
        """
    (skipped,) = diagnose(expect_nothing(run, text))
    assert (skipped.code, skipped.severity) == ("optimizer-step-not-called", "note")
    assert diagnose(expect_nothing(run, text.replace("epoch(False)", "epoch(True)"))) == ()
    (forgotten,) = diagnose(run(text.replace("optimizer.step()", "pass"))[1])
    assert forgotten.severity == "warning"


STATES = """
    import torch
    torch.manual_seed(0)
    emb, rnn = torch.nn.Embedding(6, 3), torch.nn.LSTM(3, 4)
    for step in range(3):
        h, c = START
        out, _ = rnn(emb(torch.randint(0, 6, (5, 2))), (h, c))
        loss = out.square().mean()
        loss.backward()
        with torch.no_grad():
            for p in (*emb.parameters(), *rnn.parameters()):
                p -= 0.1 * p.grad
                p.grad = None
    """


@pytest.mark.parametrize(
    "start",
    [
        "emb.weight.new_zeros(1, 2, 4), emb.weight.new_ones(1, 2, 4)",
        "emb.weight.new(1, 2, 4).zero_(), emb.weight.new(1, 2, 4).fill_(1)",
        "emb.weight.new_full((1, 2, 4), 0.1), emb.weight.new_tensor([[[0.1] * 4] * 2])",
        "torch.zeros_like(rnn.weight_hh_l0[:2])[None], torch.randn_like(rnn.weight_hh_l0[:2] * 2)[None]",
    ],
)
def test_first_states_that_take_only_a_shape_and_a_dtype_of_a_trained_tensor_are_no_branch(
    start: str,
    run: Run,  # noqa: F811
) -> None:
    assert not diagnose(expect_nothing(run, STATES.replace("START", start)))


@pytest.mark.parametrize(
    ("start", "title"),
    [
        ("(emb.weight[:2, :1] * torch.ones(1, 2, 4)).detach(), torch.zeros(1, 2, 4)", "detach()` stopped the gradient"),
        # the shape alone is taken on one path, values on another
        ("torch.zeros_like(rnn.weight_hh_l0[:2])[None], rnn.weight_hh_l0[:2].detach()[None]", "detach()` stopped the"),
        ("torch.zeros_like(rnn.weight_hh_l0[:2])[None] + rnn.weight_hh_l0[:2].data, torch.ones(1, 2, 4)", ".data`"),
    ],
)
def test_a_cut_of_values_is_a_branch_also_beside_one_that_takes_only_a_shape(
    start: str,
    title: str,
    run: Run,  # noqa: F811
) -> None:
    _, trace = run(STATES.replace("START", start))
    (note,) = diagnose(trace)
    assert (note.code, note.severity) == ("branch-detached", "note")
    assert title in note.title


def test_a_result_that_takes_only_the_shape_of_what_is_trained_is_still_named(run: Run) -> None:  # noqa: F811
    _, trace = run(
        """
        import torch
        net, head = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            head(torch.ones_like(net(torch.ones(4, 2)))).square().mean().backward()
            optimizer.step()
        """
    )
    (found,) = diagnose(trace)
    assert (found.code, found.severity) == ("branch-detached", "warning")
    assert "takes only a shape" in found.title


def test_a_step_that_a_condition_skips_is_not_to_be_written_once_more(run: Run) -> None:  # noqa: F811
    """The condition may keep NaN out of the parameters: the advice is about its line, not about a second call."""
    _, trace = run(
        """
        import torch
        net = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            net(torch.ones(4, 2)).square().mean().backward()
            norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            if norm < 0:
                optimizer.step()  # guarded
        """
    )
    (note,) = diagnose(trace)
    (advice,) = note.fixes
    assert (note.code, note.severity) == ("optimizer-step-not-called", "note")
    assert "`optimizer.step()` in this line has to run" in advice.title
    assert advice.place is not None
    (source,) = trace.sources.values()
    assert source.splitlines()[advice.place.line - 1].endswith("# guarded")
