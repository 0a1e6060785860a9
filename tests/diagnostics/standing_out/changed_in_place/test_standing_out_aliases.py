"""Checks what `--training` says about tensors that share their memory where a script takes them for two."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from support.script_under_training import said

from tensorlens.records.source import line_at

START = """
import copy, io
from collections import deque
import torch
from torch import nn
torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self, keep=False):
        super().__init__()
        self.fc = nn.Linear(3, 1)
        if keep:
            self.register_buffer("first", self.fc.weight.data)
    def forward(self, x):
        return self.fc(x)

def train(net, opt, steps=2):
    for _ in range(steps):
        opt.zero_grad()
        net(torch.ones(4, 3)).square().mean().backward()
        opt.step()

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

KEPT = {  # a snapshot that is no copy; the line of the first label ends with `# here`
    "a state dict": (
        "`best` shares memory with `net.fc.weight` and `net.fc.bias`: later steps of `SGD` write to both",
        """
        best = net.state_dict()  # here
        train(net, opt)
        """,
    ),
    "a state dict in a list": (
        "`history` shares memory with",
        """
        history = []
        for _ in range(3):
            history.append({"step": 1, "state": net.state_dict()})  # here
            train(net, opt)
        """,
    ),
    "the data of each parameter": (
        "`old` shares memory with",
        """
        old = [p.data for p in net.parameters()]  # here
        train(net, opt)
        """,
    ),
    "detached parameters": (
        "`before` shares memory with",
        """
        before = {name: p.detach() for name, p in net.named_parameters()}  # here
        train(net, opt)
        """,
    ),
    "a view of one": (
        "`row` shares memory with `net.fc.weight`",
        """
        row = net.fc.weight.detach()[0]  # here
        train(net, opt)
        """,
    ),
    "cpu() on the CPU": (
        "`best` shares memory with",
        """
        best = {name: value.cpu() for name, value in net.state_dict().items()}  # here
        train(net, opt)
        """,
    ),
    "saved when it is over": (
        "what `net.state_dict()` returns shares memory with",
        """
        def run():
            for epoch in range(3):
                train(net, opt)
                if epoch == 0:
                    best = net.state_dict()  # here
            torch.save({"best": best}, io.BytesIO())
        run()
        """,
    ),
    "averaged when it is over": (
        "what `net.state_dict()` returns shares memory with",
        """
        def run():
            states = []
            for client in range(3):
                train(net, opt)
                states.append(net.state_dict())  # here
            return [torch.stack([state["fc.bias"] for state in states]).mean(0)]
        run()
        """,
    ),
    "a buffer of a parameter": (
        "`model.first` shares memory with `model.fc.weight`",
        """
        model = Net(keep=True)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1))
        """,
    ),
    "members of a league that each round reads": (
        "what `value.detach()` returns shares memory with `net.fc.weight` and `net.fc.bias`",
        """
        def play():
            league, opponent = [], Net()
            for _ in range(5):
                league.append({name: value.detach().cpu() for name, value in net.state_dict().items()})  # here
                for member in league:
                    torch.func.functional_call(opponent, member, (torch.ones(2, 3),))
                train(net, opt)
        play()
        """,
    ),
    "members of a league that are loaded": (
        "what `value.detach()` returns shares memory with",
        """
        class Player:
            def __init__(self):
                self.weights = {name: value.detach() for name, value in net.named_parameters()}  # here
        def play():
            league, opponent = [Player()], Net()
            for turn in range(6):
                opponent.load_state_dict(league[turn // 2].weights)
                train(net, opt)
                league.append(Player())
        play()
        """,
    ),
    "values that are stacked in a function": (
        "what `net.fc.weight.detach()` returns shares memory with `net.fc.weight`",
        """
        def run():
            history = []
            for _ in range(4):
                train(net, opt)
                history.append(net.fc.weight.detach())  # here
            return torch.stack(history).mean(0)
        run()
        """,
    ),
    "the best weights in a function": (
        "what `value.detach()` returns shares memory with",
        """
        def run():
            for epoch in range(5):
                train(net, opt)
                if epoch in (0, 2):
                    best = {name: value.detach().cpu() for name, value in net.state_dict().items()}  # here
            final = Net()
            final.load_state_dict(best)
        run()
        """,
    ),
    "detached states that are saved when it is over": (
        "what `value.detach()` returns shares memory with",
        """
        def run():
            for epoch in range(3):
                train(net, opt)
                if epoch == 0:
                    best = {name: value.detach() for name, value in net.state_dict().items()}  # here
            torch.save(best, io.BytesIO())
        run()
        """,
    ),
}

GIVEN = {  # `.data = ...` makes two tensors one memory
    "a hard update": (
        "`target.fc.weight` and `target.fc.bias` share memory with `net.fc.weight` and `net.fc.bias`",
        """
        target = copy.deepcopy(net)
        for _ in range(2):
            train(net, opt)
            for tp, p in zip(target.parameters(), net.parameters()):
                tp.data = p.data  # here
        train(net, opt)
        """,
    ),
    "one line for one layer": (
        "`target.fc.bias` shares memory with `net.fc.bias` after `target.fc.bias.data = ...`",
        """
        target = Net()
        target.fc.bias.data = net.fc.bias.data  # here
        train(net, opt)
        """,
    ),
    "two optimizers": (
        "`other.fc.bias` shares memory with `net.fc.bias`",
        """
        other, third = Net(), Net()
        other.fc.bias.data = net.fc.bias.data  # here
        train(third, torch.optim.SGD(third.parameters(), lr=0.1))
        train(net, opt)
        """,
    ),
    "in a function": (
        "share memory with `net.fc.weight` and `net.fc.bias` after `mine.data = ...`",
        """
        def pull(target, source):
            for mine, theirs in zip(target.parameters(), source.parameters()):
                mine.data = theirs.detach()  # here
        target = Net()
        pull(target, net)
        train(net, opt)
        """,
    ),
}

UPDATED = {  # an update or a comparison of a tensor with itself
    "a target that is the same object": (
        "`target.load_state_dict(net.state_dict())` copies each of 2 tensors onto itself",
        """
        target = net
        train(net, opt)
        target.load_state_dict(net.state_dict())  # here
        """,
    ),
    "a shallow copy": (
        "copies each of 2 tensors onto itself, and changes nothing",
        """
        target = copy.copy(net)
        for _ in range(3):
            train(net, opt)
            target.load_state_dict(net.state_dict())  # here
        """,
    ),
    "weights that are taken out of a dict": (
        "`p.copy_(saved.pop(name))` copies a tensor onto itself: `p` and `saved.pop(name)` share their memory",
        """
        saved = {name: p.data for name, p in net.named_parameters()}
        train(net, opt)
        with torch.no_grad():
            for name, p in net.named_parameters():
                p.copy_(saved.pop(name))  # here
        """,
    ),
    "arrays of parameters": (
        "`net.load_state_dict(...)` copies each of 2 tensors onto itself, and changes nothing",
        """
        best = {key: value.numpy() for key, value in net.state_dict().items()}
        train(net, opt)
        net.load_state_dict({key: torch.from_numpy(value) for key, value in best.items()})  # here
        """,
    ),
    "polyak": (
        "`tp.data.copy_(...)` updates a tensor from itself: `tp` and `p` share their memory",
        """
        target = net
        train(net, opt)
        for tp, p in zip(target.parameters(), net.parameters()):
            tp.data.copy_(0.1 * p.data + 0.9 * tp.data)  # here
        """,
    ),
    "polyak in two lines": (
        "`tp.data.add_(0.1 * p.data)` updates a tensor from itself",
        """
        def soft(target, source):
            with torch.no_grad():
                for tp, p in zip(target.parameters(), source.parameters()):
                    tp.data.mul_(0.9)
                    tp.data.add_(0.1 * p.data)  # here
        target = net
        train(net, opt)
        soft(target, net)
        """,
    ),
    "lerp after a load that assigns": (
        "`slow.lerp_(fast, 1 - kept)` updates a tensor from itself: `slow` and `fast` share their memory",
        """
        kept = 0.9
        teacher = copy.deepcopy(net)
        teacher.load_state_dict(net.state_dict(), assign=True)
        teacher.requires_grad_(False)
        train(net, opt)
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), net.parameters()):
                slow.lerp_(fast, 1 - kept)  # here
        """,
    ),
    "lerp with a kept list": (
        "`o.lerp_(p, 0.1)` updates a tensor from itself: `o` and `p` share their memory",
        """
        old = [p.detach() for p in net.parameters()]
        train(net, opt)
        with torch.no_grad():
            for o, p in zip(old, net.parameters()):
                o.lerp_(p, 0.1)  # here
        """,
    ),
    "a moving average": (
        "`ema[k].mul_(0.9).add_(v.data, alpha=0.1)` updates a tensor from itself",
        """
        ema = {name: p.data for name, p in net.named_parameters()}
        for _ in range(3):
            train(net, opt)
            for k, v in net.named_parameters():
                ema[k].mul_(0.9).add_(v.data, alpha=0.1)  # here
        """,
    ),
    "a copy back": (
        "`p.data.copy_(b)` copies a tensor onto itself: `p` and `b` share their memory",
        """
        backup = [p.data for p in net.parameters()]
        train(net, opt)
        for p, b in zip(net.parameters(), backup):
            p.data.copy_(b)  # here
        """,
    ),
    "a backup that is assigned": (
        "all the time, also while `p.data.add_(0.1)` changed it",
        """
        for _ in range(3):
            backup = {}
            for name, p in net.named_parameters():
                backup[name] = p.data
                p.data.add_(0.1)
            net(torch.ones(1, 3)).sum().item()
            for name, p in net.named_parameters():
                p.data = backup[name]  # here
            train(net, opt)
        """,
    ),
    "weights that are assigned after steps": (
        "`p.data = old` restores nothing",
        """
        best = [p.detach() for p in net.parameters()]
        train(net, opt)
        for p, old in zip(net.parameters(), best):
            p.data = old  # here
        """,
    ),
    "the distance that training went": (
        "`p - o` compares a tensor with itself: `p` and `o` share their memory",
        """
        start = [p.data for p in net.parameters()]
        train(net, opt)
        print(sum((p - o).norm() for p, o in zip(net.parameters(), start)))  # here
        """,
    ),
    "the prior of the next task": (
        "compares a tensor with itself in each of the last 6 times that it runs: `self.loc` and `self.prior_loc`",
        """
        class Belief(nn.Module):
            def __init__(self):
                super().__init__()
                self.loc = nn.Parameter(torch.ones(3))
                self.register_buffer("prior_loc", torch.zeros(3))
            def penalty(self):
                return ((self.loc - self.prior_loc) / 0.5).square().sum()  # here
            def carry_over(self):
                self.prior_loc = self.loc.detach()
        belief = Belief()
        opt = torch.optim.SGD(belief.parameters(), lr=0.1)
        for task in range(3):
            for _ in range(3):
                opt.zero_grad()
                ((torch.ones(4, 3) @ belief.loc - task).square().mean() + belief.penalty()).backward()
                opt.step()
            belief.carry_over()
        """,
    ),
    "the distance to the same parameters": (
        "`p - start[name]` compares a tensor with itself",
        """
        start = dict(net.named_parameters())
        train(net, opt)
        for name, p in net.named_parameters():
            drift = (p - start[name]).abs().max()  # here
        """,
    ),
}

TARGETS = {  # a module under two names
    "no_grad": (
        "`target` and `net` have the same parameters: the loss takes the result of `target` as a constant",
        """
        target = net
        for _ in range(3):
            with torch.no_grad():
                goal = 1 + 0.9 * target(torch.ones(4, 3))  # here
            loss = (net(torch.zeros(4, 3)) - goal).square().mean()
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    ),
    "detach": (
        "`self.target` and `self.policy` have the same parameters",
        """
        class Agent:
            def __init__(self):
                self.policy = net
                self.target = copy.copy(net)
            def learn(self):
                q = self.policy(torch.zeros(4, 3))
                goal = 1 + self.target(torch.ones(4, 3)).detach()  # here
                opt.zero_grad(); nn.functional.mse_loss(q, goal).backward(); opt.step()
        agent = Agent()
        for _ in range(3):
            agent.learn()
        """,
    ),
    "an old policy": (
        "`old` and `policy` have the same parameters",
        """
        def run(policy, old):
            for _ in range(2):
                with torch.no_grad():
                    before = old(torch.ones(4, 3))  # here
                ratio = (policy(torch.ones(4, 3)) - before).exp()
                opt.zero_grad(); ratio.mean().backward(); opt.step()
        run(net, net)
        """,
    ),
    "a teacher": (
        "`teacher` and `student` have the same parameters",
        """
        student = net
        teacher = student.eval()
        for _ in range(3):
            goal = teacher(torch.ones(4, 3)).detach()  # here
            loss = nn.functional.mse_loss(student(torch.ones(4, 3) * 0.9), goal)
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    ),
}

ITEMS = {  # a list whose items share their memory, and parts of an expanded tensor
    "a replay memory": (
        "`memory` holds one tensor 6 times: `state += ...` changes it in place",
        """
        state, memory = torch.zeros(3), deque(maxlen=10)
        for t in range(6):
            state += torch.randn(3)  # here
            memory.append((state, t))
        """,
    ),
    "an overwritten batch": (
        "`batches` holds one tensor 4 times: `batch.copy_(torch.randn(2, 3))` changes it",
        """
        batch, batches = torch.empty(2, 3), []
        for t in range(4):
            batch.copy_(torch.randn(2, 3))  # here
            batches.append(batch)
        """,
    ),
    "views of one": (
        "`rows` holds one tensor 5 times",
        """
        batch, rows = torch.empty(2, 3), []
        for t in range(5):
            batch.copy_(torch.randn(2, 3))  # here
            rows.append(batch[0])
        """,
    ),
    "samples of the parameters that a line changes": (
        "`samples` holds one tensor 4 times: `p -= ...` changes it in place",
        """
        samples = []
        for t in range(4):
            net(torch.ones(4, 3)).square().mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.1 * p.grad + 0.01 * torch.randn_like(p)  # here
            samples.append({name: p.detach() for name, p in net.named_parameters()})
        """,
    ),
    "the data of parameters that a line changes": (
        "`samples` holds one tensor 4 times: `p.add_(0.01 * torch.randn_like(p))` changes it in place",
        """
        samples = []
        for t in range(4):
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(0.01 * torch.randn_like(p))  # here
            samples.append([p.data for p in net.parameters()])
        """,
    ),
    "states of a cell": (
        "`torch.stack(outs)` joins one tensor 5 times",
        """
        def run():
            h, outs = torch.zeros(3), []
            for t in range(5):
                h.mul_(0.5).add_(1)  # here
                outs.append(h)
            return torch.stack(outs)
        run()
        """,
    ),
    "a row of an expanded tensor": (
        "`h[0] = ...` writes to an expanded tensor: the 12 elements of `h` are 4 in memory",
        """
        h = torch.zeros(1, 4).expand(3, -1)
        h[0] = 1  # here
        """,
    ),
    "an expanded part of a table": (
        "the 60 elements of `x` are 3 in memory",
        """
        table = torch.zeros(5, 3)
        x = table[:1].expand(20, 3)
        x[0] = 1  # here
        """,
    ),
    "expanded twice": (
        "the 24 elements of `x` are 3 in memory",
        """
        x = torch.zeros(8, 3)[1].expand(4, 3).expand(2, 4, 3)
        x[0, 1] = 1  # here
        """,
    ),
    "an update of a row": (
        "`h[1].add_(2)` writes to an expanded tensor",
        """
        h = torch.zeros(4).expand(3, 4)
        h[1].add_(2)  # here
        """,
    ),
    "a broadcast mask": (
        "`mask[2] = ...` writes to an expanded tensor",
        """
        mask = torch.broadcast_to(torch.ones(4, dtype=torch.bool), (3, 4))
        mask[2] = False  # here
        """,
    ),
    "expanded like another": (
        "`bias[0].zero_()` writes to an expanded tensor",
        """
        bias = torch.ones(1, 3).expand_as(torch.zeros(5, 3))
        bias[0].zero_()  # here
        """,
    ),
}

RIGHT = {
    "a prior that is cloned": """
        class Belief(nn.Module):
            def __init__(self):
                super().__init__()
                self.loc = nn.Parameter(torch.ones(3))
                self.register_buffer("prior_loc", torch.zeros(3))
        belief = Belief()
        opt = torch.optim.SGD(belief.parameters(), lr=0.1)
        for task in range(3):
            for _ in range(3):
                fit = (torch.ones(4, 3) @ belief.loc - task).square().mean()
                opt.zero_grad()
                (fit + (belief.loc - belief.prior_loc).square().sum()).backward()
                opt.step()
            belief.prior_loc = belief.loc.detach().clone()
        """,
    "an attribute that each pass makes anew": """
        class Rounding(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))
            def forward(self, x):
                self.fixed = self.weight.detach()
                return x @ (self.fixed.round() * (1 + self.weight - self.fixed))
        def run():
            model = Rounding()
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(4):
                opt.zero_grad(); model(torch.ones(4, 3)).square().mean().backward(); opt.step()
                model.fixed.norm().item()
        run()
        """,
    "members of a league that are cloned": """
        def play():
            league, opponent = [], Net()
            for _ in range(5):
                league.append({name: value.detach().clone() for name, value in net.state_dict().items()})
                for member in league:
                    torch.func.functional_call(opponent, member, (torch.ones(2, 3),))
                opponent.load_state_dict(league[0])
                train(net, opt)
        play()
        """,
    "weights that each round sends": """
        def play():
            actor = Net()
            for _ in range(5):
                weights = {name: value.detach().cpu() for name, value in net.state_dict().items()}
                actor.load_state_dict(weights)
                actor(torch.ones(2, 3)).mean().item()
                train(net, opt)
        play()
        """,
    "a monitor of each phase": """
        class Monitor:
            def __init__(self, model):
                self.views = [p.detach() for p in model.parameters()]
            def report(self):
                return [float(view.norm()) for view in self.views]
        def run():
            monitors = []
            for phase in range(4):
                monitors.append(Monitor(net))
                for _ in range(2):
                    train(net, opt)
                    for monitor in monitors:
                        monitor.report()
        run()
        """,
    "norms by views of each step": """
        def norm():
            params = [p.detach() for p in net.parameters()]
            return torch.stack([p.norm() for p in params]).norm().item()
        def run():
            for _ in range(5):
                before = norm()
                train(net, opt)
                after = norm()
        run()
        """,
    "views that the last round made, and new ones": """
        def run():
            views = [p.detach() for p in net.parameters()]
            for _ in range(5):
                train(net, opt)
                size = sum(float(view.square().sum()) for view in views)
                views = [p.detach() for p in net.parameters()]
        run()
        """,
    "the last weights in a function": """
        def run():
            for epoch in range(4):
                train(net, opt)
                last = {name: value.detach().cpu() for name, value in net.state_dict().items()}
            final = Net()
            final.load_state_dict(last)
        run()
        """,
    "a live view that each round reads": """
        rows = net.fc.weight.data
        for _ in range(4):
            train(net, opt)
            print(float((rows @ rows.t())[0, 0]) > -1, end="")
        """,
    "a difference that passes the gradient on": """
        def rounded(w, fixed):
            return torch.sign(fixed) * fixed.abs().mean() + (w - fixed)
        for _ in range(3):
            out = torch.ones(4, 3) @ rounded(net.fc.weight, net.fc.weight.detach()).t()
            opt.zero_grad(); out.square().mean().backward(); opt.step()
        """,
    "one rate in all groups": """
        rate = torch.tensor(0.05)
        groups = [{"net": net, "rate": rate} for net in (Net(), Net(), Net())]
        for _ in range(6):
            rate.mul_(0.9)
        """,
    "one model in all clients": """
        state, clients = torch.zeros(3), []
        for k in range(4):
            clients.append({"state": state, "data": torch.randn(3)})
        for _ in range(6):
            state += 0.1 * sum(client["data"] for client in clients)
        """,
    "samples that are copies": """
        samples = []
        for t in range(4):
            net(torch.ones(4, 3)).square().mean().backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.1 * p.grad + 0.01 * torch.randn_like(p)
            samples.append({name: p.detach().clone() for name, p in net.named_parameters()})
        """,
    "workers with one memory": """
        workers = [{name: p.detach() for name, p in net.named_parameters()} for _ in range(3)]
        for t in range(4):
            for worker in workers:
                out = torch.func.functional_call(net, worker, (torch.ones(4, 3),))
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.1 * out.mean()
        """,
    "a copy that is assigned back": """
        backup = {name: p.data.clone() for name, p in net.named_parameters()}
        train(net, opt)
        for name, p in net.named_parameters():
            p.data = backup[name]
        train(net, opt)
        """,
    "limits of weights": """
        for _ in range(3):
            train(net, opt)
            for p in net.parameters():
                w = p.data
                w.clamp_(-1, 1)
                p.data = w
        """,
    "memory that is swapped": """
        average = [p.detach().clone() for p in net.parameters()]
        for _ in range(3):
            train(net, opt)
            live = [p.data for p in net.parameters()]
            for p, a in zip(net.parameters(), average):
                a.lerp_(p.data, 0.1)
                p.data = a
            net(torch.ones(1, 3)).sum().item()
            for p, w in zip(net.parameters(), live):
                p.data = w
        """,
    "gradient caching": """
        x = torch.randn(8, 3)
        for _ in range(3):
            opt.zero_grad()
            with torch.no_grad():
                kept = torch.cat([net(part) for part in x.split(4)])
            kept.requires_grad_()
            kept.square().mean().backward()
            for tower, gradient in ((net, kept.grad),):
                for part, g in zip(x.split(4), gradient.split(4)):
                    (tower(part) * g).sum().backward()
            opt.step()
        """,
    "averaged weights for an evaluation": """
        shadow = {name: p.data.clone() for name, p in net.named_parameters()}
        for _ in range(3):
            train(net, opt)
            backup = {}
            for name, p in net.named_parameters():
                backup[name] = p.data
                p.data = shadow[name]
            net(torch.ones(1, 3))
            for name, p in net.named_parameters():
                p.data = backup[name]
        """,
    "data of a copy": """
        target = copy.deepcopy(net)
        for _ in range(3):
            train(net, opt)
            for tp, p in zip(target.parameters(), net.parameters()):
                tp.data = p.data.clone()
        """,
    "zeros like another name": """
        start = dict(net.named_parameters())
        train(net, opt)
        with torch.no_grad():
            for name, p in net.named_parameters():
                p.data.copy_(torch.zeros_like(start[name]))
        """,
    "deepcopy": """
        best = copy.deepcopy(net.state_dict())
        train(net, opt)
        net.load_state_dict(best)
        """,
    "cloned state dict": """
        best = {k: v.clone() for k, v in net.state_dict().items()}
        train(net, opt)
        print(sum((v - net.state_dict()[k]).norm() for k, v in best.items()))
        """,
    "a checkpoint that is saved at once": """
        for _ in range(3):
            checkpoint = {"net": net.state_dict(), "opt": opt.state_dict(), "step": 1}
            torch.save(checkpoint, io.BytesIO())
            train(net, opt)
        """,
    "parameters for the optimizer": """
        params = list(net.parameters())
        named = dict(net.named_parameters())
        other = torch.optim.SGD(params, lr=0.1)
        train(net, other)
        """,
    "a state dict taken at the end": """
        train(net, opt)
        best = net.state_dict()
        """,
    "pretrained parts": """
        state = net.state_dict()
        state.update({"fc.bias": torch.ones(1), "fc.weight": torch.ones(1, 3)})
        net.load_state_dict(state)
        train(net, opt)
        """,
    "one part is pretrained": """
        state = net.state_dict()
        state.update({"fc.bias": torch.ones(1)})
        net.load_state_dict(state)
        train(net, opt)
        """,
    "updates by hand through data": """
        weights = [p.data for p in net.parameters()]
        for _ in range(3):
            train(net, opt)
            for w in weights:
                w.clamp_(-1, 1)
        """,
    "weight decay by hand": """
        for _ in range(3):
            train(net, opt)
            with torch.no_grad():
                for p in net.parameters():
                    w = p.data
                    w.add_(p, alpha=-0.01)
                    p.mul_(1 - 0.01)
                    p.data.add_(p.data, alpha=-0.01)
        """,
    "a target network": """
        target = copy.deepcopy(net)
        for _ in range(3):
            with torch.no_grad():
                goal = target(torch.ones(4, 3))
            opt.zero_grad(); (net(torch.zeros(4, 3)) - goal).square().mean().backward(); opt.step()
            for tp, p in zip(target.parameters(), net.parameters()):
                tp.data.copy_(0.1 * p.data + 0.9 * tp.data)
            target.load_state_dict(net.state_dict())
        """,
    "a moving average": """
        shadow = {name: p.detach().clone() for name, p in net.named_parameters()}
        for _ in range(3):
            train(net, opt)
            for name, p in net.named_parameters():
                shadow[name].lerp_(p.detach(), 0.1)
        """,
    "a module under two names": """
        class Trainer:
            def __init__(self, model):
                self.model = model
                self.raw = model
            def evaluate(self):
                with torch.no_grad():
                    return self.raw(torch.ones(4, 3)).mean().item()
        trainer, raw = Trainer(net), net
        for _ in range(3):
            train(trainer.model, opt)
            trainer.evaluate()
        with torch.no_grad():
            score = raw(torch.ones(4, 3))
        """,
    "its own target": """
        for _ in range(3):
            with torch.no_grad():
                goal = 1 + 0.9 * net(torch.ones(4, 3))
            opt.zero_grad(); (net(torch.zeros(4, 3)) - goal).square().mean().backward(); opt.step()
        """,
    "a shared trunk": """
        trunk = nn.Linear(3, 3)
        actor, critic = nn.Sequential(trunk, nn.Linear(3, 2)), nn.Sequential(trunk, nn.Linear(3, 1))
        opt = torch.optim.SGD([*actor.parameters(), *critic[1].parameters()], lr=0.1)
        for _ in range(3):
            with torch.no_grad():
                value = critic(torch.ones(4, 3))
            loss = (actor(torch.ones(4, 3)).log_softmax(1)[:, :1] * (1 - value)).mean()
            loss = loss + critic(torch.ones(4, 3)).square().mean()
            opt.zero_grad(); loss.backward(); opt.step()
        """,
    "tied weights": """
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.out = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
                self.out.weight = self.embed.weight
            def forward(self, x):
                return self.out(self.embed(torch.tensor([0, 1])))
        tied = Tied()
        train(tied, torch.optim.SGD(tied.parameters(), lr=0.1))
        print((tied.embed.weight - tied.out.weight).norm())
        """,
    "a buffer that is cloned": """
        class Anchored(Net):
            def __init__(self):
                super().__init__()
                self.register_buffer("first", self.fc.weight.detach().clone())
        net = Anchored()
        train(net, torch.optim.SGD(net.parameters(), lr=0.1))
        """,
    "copies in a memory": """
        state, memory = torch.zeros(3), []
        for t in range(6):
            state += 1
            memory.append(state.clone())
        """,
    "new tensors in a memory": """
        state, memory = torch.zeros(3), deque(maxlen=4)
        for t in range(6):
            state = state + 1
            memory.append((state, t))
        """,
    "rows of a buffer": """
        store, rows = torch.zeros(6, 3), []
        for t in range(6):
            store[t].copy_(torch.randn(3))
            rows.append(store[t])
        """,
    "one value many times": """
        x = torch.randn(3)
        x.sub_(x.mean()).div_(x.std())
        batch = torch.stack([x for _ in range(4)])
        """,
    "expanded and cloned": """
        h = torch.zeros(1, 4).expand(3, -1).clone()
        h[0] = 1
        g = torch.zeros(3, 4).expand(3, 4)
        g[0] = 1
        """,
    "a square and a sum in place": """
        x = torch.ones(3)
        x.mul_(x)
        y = x
        y.add_(x)
        """,
    "loop variables": """
        for name, value in net.state_dict().items():
            print(name, value.shape)
        train(net, opt)
        """,
}

MINE = (
    "memory",
    "onto itself",
    "restores nothing",
    "from itself",
    "with itself",
    "same parameters",
    "holds one tensor",
    "joins one tensor",
)


@pytest.mark.parametrize("kind", [*KEPT, *GIVEN, *UPDATED, *TARGETS, *ITEMS])
def test_one_memory_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")
    sentence, script = (KEPT | GIVEN | UPDATED | TARGETS | ITEMS)[kind]
    found, _ = said(tmp_path, START + textwrap.dedent(script), *MINE)
    assert [each.text for each in found if sentence in each.text]
    assert len(found) == 1
    label = found[0].labels[0]
    marked = "self.register_buffer" if kind == "a buffer of a parameter" else "# here"
    assert marked in line_at((tmp_path / "script.py").read_text(), label.span.line)


@pytest.mark.parametrize("kind", RIGHT)
def test_copies_and_common_aliases_are_no_news(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORLENS_DEBUG", "1")
    found, _ = said(tmp_path, START + textwrap.dedent(RIGHT[kind]), *MINE)
    assert found == []


@pytest.mark.parametrize("line", ["net.load_state_dict(best)", "best['fc.bias'].lerp_(net.state_dict()['fc.bias'], 1)"])
def test_a_finding_is_not_said_again(line: str, tmp_path: Path) -> None:
    script = f"best = net.state_dict()\ntrain(net, opt)\n{line}\n"
    found, codes = said(tmp_path, START + script, *MINE)
    assert "state-dict-aliases-parameters" in codes
    assert found == []
