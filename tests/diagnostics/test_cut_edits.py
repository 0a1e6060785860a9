"""The edits that help with a graph that was released, or cut: with the first help applied, every optimizer step gets
the gradients of the program without the mistake.

In the programs, lines after `#-` are the mistake, lines after `#+` replace them when it is repaired.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from support.first_help import Programs, lines_of
from support.warm import Warm
from torch.optim.optimizer import register_optimizer_step_pre_hook

CURED = {
    "membrane potentials of two layers": """
        import torch, torch.nn as nn
        class LIF(nn.Module):
            def __init__(self, n, m, beta=0.9):
                super().__init__()
                self.fc = nn.Linear(n, m)
                self.beta = beta
                self.mem = None
            def forward(self, x):
                cur = self.fc(x)
                if self.mem is None:
                    self.mem = torch.zeros_like(cur)
                self.mem = self.beta * self.mem + cur
                spk = torch.sigmoid(5 * (self.mem - 1.0))
                self.mem = self.mem - spk
                return spk
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = LIF(6, 12), LIF(12, 3)
            def forward(self, x):
                outs = [self.b(self.a(x)) for _ in range(4)]
                return torch.stack(outs).sum(0)
        torch.manual_seed(0)
        net = Net()
        opt = torch.optim.Adam(net.parameters(), lr=1e-2)
        for it in range(3):
            x, y = torch.rand(8, 6), torch.randint(0, 3, (8,))
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ net.a.mem = net.a.mem.detach(); net.b.mem = net.b.mem.detach()
            print(loss.item())
        """,
    "a detach whose result is dropped": """
        import torch, torch.nn as nn
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(4, 8, batch_first=True)
                self.out = nn.Linear(8, 1)
            def forward(self, x, h):
                y, h = self.rnn(x, h)
                return self.out(y), h
        torch.manual_seed(0)
        model = Model()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        hidden = torch.zeros(1, 3, 8)
        for it in range(3):
            x, y = torch.randn(3, 5, 4), torch.randn(3, 5, 1)
            #- hidden.detach()
            #+ hidden = hidden.detach()
            pred, hidden = model(x, hidden)
            loss = (pred - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "the state of an LSTM": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(4, 8, batch_first=True)
                self.out = nn.Linear(8, 1)
            def forward(self, x, state=None):
                y, state = self.rnn(x, state)
                return self.out(y), state
        def train():
            model = Model()
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            state = None
            for it in range(3):
                x, y = torch.randn(3, 5, 4), torch.randn(3, 5, 1)
                pred, state = model(x, state)
                loss = (pred - y).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
                #+ state = tuple(s.detach() for s in state)
        train()
        """,
    "two states of a cell": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell = nn.LSTMCell(4, 8)
        head = nn.Linear(8, 1)
        opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(3, 8)
        c = torch.zeros(3, 8)
        for it in range(3):
            loss = 0
            for t in range(4):
                x, y = torch.randn(3, 4), torch.randn(3, 1)
                h, c = cell(x, (h, c))
                loss = loss + (head(h) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ h, c = h.detach(), c.detach()
        """,
    "lists that are never cleared": """
        import torch, torch.nn as nn
        from torch.distributions import Categorical
        torch.manual_seed(0)
        policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
        opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
        log_probs = []
        rewards = []
        for episode in range(3):
            s = torch.randn(4)
            for t in range(5):
                d = Categorical(logits=policy(s))
                a = d.sample()
                log_probs.append(d.log_prob(a))
                s = torch.randn(4)
                rewards.append(float(s.sum()))
            returns = torch.tensor(rewards)
            loss = -(torch.stack(log_probs) * returns).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(len(rewards))
            #+ log_probs.clear(); rewards.clear()
        """,
    "a list of losses": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for step in range(3):
            for k in range(2):
                x, y = torch.randn(5, 4), torch.randn(5, 1)
                losses.append((net(x) - y).pow(2).mean())
            total = sum(losses) / len(losses)
            opt.zero_grad()
            total.backward()
            opt.step()
            #+ losses.clear()
        """,
    "a running total": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        total = 0
        for step in range(3):
            x, y = torch.randn(5, 4), torch.randn(5, 1)
            loss = (net(x) - y).pow(2).mean()
            total += loss
            opt.zero_grad()
            total.backward()
            opt.step()
            #+ total = total.detach()
        """,
    "a penalty on a gradient without a graph": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.SGD(critic.parameters(), lr=0.1)
        for step in range(2):
            real, fake = torch.randn(5, 4), torch.randn(5, 4)
            mix = (0.5 * real + 0.5 * fake).requires_grad_()
            score = critic(mix)
            #- grad, = torch.autograd.grad(score.sum(), mix)
            #+ grad, = torch.autograd.grad(score.sum(), mix, create_graph=True)
            penalty = ((grad.norm(dim=1) - 1) ** 2).mean()
            loss = critic(fake).mean() - critic(real).mean() + 10 * penalty + 0.001 * score.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "two losses with one trunk": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        trunk, h1, h2 = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.SGD([*trunk.parameters(), *h1.parameters(), *h2.parameters()], lr=0.1)
        for step in range(2):
            x, y = torch.randn(5, 4), torch.randn(5, 1)
            z = torch.tanh(trunk(x))
            l1 = (h1(z) - y).pow(2).mean()
            l2 = (h2(z) + y).pow(2).mean()
            opt.zero_grad()
            #- l1.backward()
            #+ l1.backward(retain_graph=True)
            l2.backward()
            opt.step()
        """,
    "a state that a function returns": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell, out = nn.GRUCell(4, 6), nn.Linear(6, 1)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
        def train_step(x, y, h):
            h = cell(x, h)
            loss = (out(h) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #- return loss.item(), h
            #+ return loss.item(), h.detach()
        h = torch.zeros(2, 6)
        for it in range(3):
            value, h = train_step(torch.randn(2, 4), torch.randn(2, 1), h)
            print(value)
        """,
    "a list of states": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cells = nn.ModuleList([nn.GRUCell(4, 4) for _ in range(2)])
        out = nn.Linear(4, 1)
        opt = torch.optim.SGD([*cells.parameters(), *out.parameters()], lr=0.1)
        hs = [torch.zeros(2, 4) for _ in cells]
        for it in range(3):
            z, y = torch.randn(2, 4), torch.randn(2, 1)
            for i, cell in enumerate(cells):
                hs[i] = cell(z, hs[i])
                z = hs[i]
            loss = (out(z) - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ hs = [h.detach() for h in hs]
        """,
    "lists that a return reads": """
        import torch, torch.nn as nn
        from torch.distributions import Categorical
        torch.manual_seed(0)
        class Agent:
            def __init__(self):
                self.net = nn.Linear(4, 2)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
                self.saved, self.rewards = [], []
            def act(self, s):
                d = Categorical(logits=self.net(s))
                a = d.sample()
                self.saved.append(d.log_prob(a))
                return a
            def learn(self):
                R, returns = 0, []
                for r in self.rewards[::-1]:
                    R = r + 0.9 * R
                    returns.insert(0, R)
                loss = sum(-lp * R for lp, R in zip(self.saved, returns))
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                #- return sum(self.rewards)
                #+ total = sum(self.rewards); self.rewards.clear(); self.saved.clear()
                #+ return total
        agent = Agent()
        for ep in range(3):
            for t in range(5):
                a = agent.act(torch.randn(4))
                agent.rewards.append(float(a))
            print(agent.learn())
        """,
    "a dict of states": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        class Tracker(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(4, 6)
                self.out = nn.Linear(6, 1)
                self.state = {}
            def forward(self, key, x):
                h = self.state.get(key, torch.zeros(x.size(0), 6))
                self.state[key] = self.cell(x, h)
                return self.out(self.state[key])
        net = Tracker()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(3):
            loss = 0
            for key in ("a", "b"):
                loss = loss + (net(key, torch.randn(2, 4)) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ net.state = {k: v.detach() for k, v in net.state.items()}
        """,
    "a function that detaches nothing": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        def repackage(state):
            for s in state:
                s.detach()
            return state
        rnn, out = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 1)
        opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], lr=0.1)
        state = (torch.zeros(1, 2, 6), torch.zeros(1, 2, 6))
        for it in range(3):
            #- state = repackage(state)
            #+ state = tuple(s.detach() for s in state)
            y, state = rnn(torch.randn(2, 3, 4), state)
            loss = (out(y) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a buffer changed in place": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        class Norm(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 3)
                self.register_buffer("mean", torch.zeros(3))
            def forward(self, x):
                z = self.lin(x)
                self.mean.mul_(0.9).add_(0.1 * torch.tanh(z).mean(0))
                return z - self.mean
        net = Norm()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(3):
            loss = net(torch.randn(5, 4)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ net.mean = net.mean.detach()
        """,
    "a term computed before the loop": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        reg = net.weight.pow(2).sum()
        def client(x, y):
            loss = (net(x) - y).pow(2).mean() + 0.1 * reg
            opt.zero_grad()
            loss.backward()
            opt.step()
            return loss.item()
        for it in range(3):
            #+ reg = net.weight.pow(2).sum()
            print(client(torch.randn(5, 4), torch.randn(5, 1)))
        """,
    "a trunk that a step has trained": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        trunk, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        opt_c = torch.optim.SGD([*trunk.parameters(), *critic.parameters()], lr=0.1)
        opt_a = torch.optim.SGD(actor.parameters(), lr=0.1)
        for it in range(2):
            s, r = torch.randn(5, 4), torch.randn(5, 1)
            h = torch.tanh(trunk(s))
            v = critic(h)
            adv = r - v
            closs = adv.pow(2).mean()
            opt_c.zero_grad()
            closs.backward()
            opt_c.step()
            #- aloss = -(actor(h).log_softmax(1)[:, :1] * adv.detach()).mean()
            #+ aloss = -(actor(h.detach()).log_softmax(1)[:, :1] * adv.detach()).mean()
            opt_a.zero_grad()
            aloss.backward()
            opt_a.step()
        """,
    "a forward pass without gradients": """
        import torch, torch.nn as nn
        import torch.nn.functional as F
        torch.manual_seed(0)
        enc, head = nn.Linear(4, 8), nn.Linear(8, 2)
        opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
        for it in range(2):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
            #- with torch.no_grad():
            #-     z = torch.relu(enc(x))
            #-     logits = head(z)
            #+ z = torch.relu(enc(x))
            #+ logits = head(z)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a decorated forward": """
        import torch, torch.nn as nn
        import torch.nn.functional as F
        torch.manual_seed(0)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(4, 2)
            #- @torch.no_grad()
            def forward(self, x):
                return self.l(x)
        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a tensor made of tensors": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            a, b = net(torch.randn(5, 4)).mean(), net(torch.randn(5, 4)).pow(2).mean()
            #- loss = torch.tensor([a, b]).sum()
            #+ loss = torch.stack([a, b]).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a sum of numbers": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def batch_loss(x, y):
            return (net(x) - y).pow(2).mean()
        for it in range(2):
            total = 0.0
            for k in range(3):
                x, y = torch.randn(5, 4), torch.randn(5, 1)
                #- total += batch_loss(x, y).item()
                #+ total += batch_loss(x, y)
            #- loss = torch.tensor(total / 3)
            #+ loss = total / 3
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "two numbers": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        a, b = nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
        for it in range(2):
            x = torch.randn(5, 4)
            la = (a(x) - 1).pow(2).mean()
            lb = (b(x) + 1).pow(2).mean()
            #- total = la.item() + 0.5 * lb.item()
            #+ total = la + 0.5 * lb
            #- loss = torch.tensor(total)
            #+ loss = total
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "numbers in a meter": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        class Meter:
            def __init__(self):
                self.sum, self.n = 0.0, 0
            def update(self, v):
                self.sum += v
                self.n += 1
        for it in range(2):
            meter = Meter()
            for k in range(2):
                loss = (net(torch.randn(5, 4)) - 1).pow(2).mean()
                #- meter.update(loss.item())
                #+ meter.update(loss)
            #- total = torch.tensor(meter.sum / meter.n)
            #+ total = meter.sum / meter.n
            opt.zero_grad()
            total.backward()
            opt.step()
        """,
    "data": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 3)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            out = net(torch.randn(5, 4))
            #- p = out.data.softmax(1)
            #+ p = out.softmax(1)
            loss = (p * p.log()).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "an input that does not require grad": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters(), lr=0.01)
        #- t = torch.linspace(0, 1, 10).view(-1, 1)
        #+ t = torch.linspace(0, 1, 10).view(-1, 1).requires_grad_()
        for it in range(2):
            u = net(t)
            du, = torch.autograd.grad(u.sum(), t, create_graph=True)
            loss = (du + u).pow(2).mean() + (u[0] - 1).pow(2).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a derivative without a graph": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters(), lr=0.01)
        t = torch.linspace(0, 1, 10).view(-1, 1).requires_grad_()
        for it in range(2):
            u = net(t)
            #- du = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), retain_graph=True)[0]
            #+ du = torch.autograd.grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True)[0]
            d2u = torch.autograd.grad(du, t, grad_outputs=torch.ones_like(du), create_graph=True)[0]
            loss = (d2u + u).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "indices": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 6)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            s = net(torch.randn(5, 4))
            #- loss = -s.topk(2, dim=1).indices.float().mean()
            #+ loss = -s.topk(2, dim=1).values.float().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "gradients stay off after validation": """
        import torch, torch.nn as nn
        import torch.nn.functional as F
        torch.manual_seed(0)
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        xv, yv = torch.randn(6, 4), torch.randint(0, 2, (6,))
        for epoch in range(2):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
            #- torch.set_grad_enabled(False)
            #- acc = (net(xv).argmax(1) == yv).float().mean()
            #+ with torch.no_grad():
            #+     acc = (net(xv).argmax(1) == yv).float().mean()
            print(acc.item())
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "gradients stay off after a phase": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        data = [(torch.randn(5, 4), torch.randint(0, 2, (5,))) for _ in range(4)]
        for epoch in range(2):
            for phase in ("train", "val"):
                #- if phase == "val":
                #-     torch.set_grad_enabled(False)
                #+ torch.set_grad_enabled(phase == "train")
                for x, y in data:
                    loss = nn.functional.cross_entropy(net(x), y)
                    if phase == "train":
                        opt.zero_grad()
                        loss.backward()
                        opt.step()
        """,
    "a switch for nothing": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        #- torch.set_grad_enabled(False)
        def run(x, train):
            return net(x)
        for it in range(2):
            loss = nn.functional.cross_entropy(run(torch.randn(5, 4), True), torch.randint(0, 2, (5,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "arithmetic in NumPy": """
        import torch, torch.nn as nn, numpy as np
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            x, y = torch.randn(5, 4), torch.randn(5, 1)
            pred = net(x)
            #- p = pred.detach().numpy()
            #- loss = torch.from_numpy((p - y.numpy()) ** 2).mean()
            #+ loss = ((pred - y) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a cut behind a cut": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        enc, dec = nn.Linear(4, 8), nn.Linear(8, 4)
        opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], lr=0.1)
        for it in range(2):
            x = torch.randn(5, 4)
            #- z = torch.tanh(enc(x)).detach()
            #+ z = torch.tanh(enc(x))
            #- rec = dec(z).data
            #+ rec = dec(z)
            loss = (rec - x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "two cuts side by side": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        a, b = nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
        for it in range(2):
            x = torch.randn(5, 4)
            #- ya, yb = a(x).detach(), b(x).detach()
            #+ ya, yb = a(x), b(x)
            loss = (ya - yb - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a cut that is meant behind one that is not": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        enc, dec, head = nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(8, 2)
        opt = torch.optim.SGD([*enc.parameters(), *dec.parameters(), *head.parameters()], lr=0.1)
        for it in range(2):
            x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
            z = torch.tanh(enc(x))
            rec = dec(z)
            #- probe = head(z.detach()).data
            #+ probe = head(z.detach())
            loss = nn.functional.cross_entropy(probe, y)
            opt.zero_grad()
            loss.backward()
            (rec - x).pow(2).mean().backward()
            opt.step()
        """,
    "a head frozen too": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        base, head = nn.Linear(4, 8), nn.Linear(8, 2)
        net = nn.Sequential(base, nn.ReLU(), head)
        net.requires_grad_(False)
        opt = torch.optim.SGD(head.parameters(), lr=0.1)
        #+ head.requires_grad_(True)
        for it in range(2):
            loss = nn.functional.cross_entropy(net(torch.randn(5, 4)), torch.randint(0, 2, (5,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "backward on a number": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            print(net.weight.sum().item())
            #- loss = (net(torch.randn(5, 4)) - 1).pow(2).mean().item()
            #+ loss = (net(torch.randn(5, 4)) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a state over several steps": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell, out = nn.GRUCell(4, 6), nn.Linear(6, 1)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
        h, loss = torch.zeros(2, 6), 0
        for it in range(9):
            h = cell(torch.randn(2, 4), h)
            loss = loss + (out(h) - 1).pow(2).mean()
            if (it + 1) % 3 == 0:
                opt.zero_grad()
                loss.backward()
                opt.step()
                #- loss = 0
                #+ loss, h = 0, h.detach()
        """,
    "a state of an object": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        class Agent:
            def __init__(self):
                self.net = nn.RNNCell(4, 6)
                self.out = nn.Linear(6, 1)
                self.h = torch.zeros(2, 6)
                self.opt = torch.optim.SGD([*self.net.parameters(), *self.out.parameters()], lr=0.1)
            def forward(self, x):
                self.h = self.net(x, self.h)
                return self.out(self.h)
            def update(self, loss):
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                #+ self.h = self.h.detach()
        def main():
            agent = Agent()
            for it in range(3):
                x, y = torch.randn(2, 4), torch.randn(2, 1)
                loss = (agent.forward(x) - y).pow(2).mean()
                agent.update(loss)
        main()
        """,
    "a mean whose sum and count are never started again": """
        import torch, torch.nn as nn
        class Mean:
            def __init__(self):
                self.total, self.number = 0.0, 0
            def add(self, term):
                self.total += term
                self.number += 1
            def value(self):
                return self.total / self.number
        torch.manual_seed(0)
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        mean = Mean()
        for it in range(6):
            mean.add((net(torch.randn(4, 3)) - 1).pow(2).mean())
            if it % 2 == 1:
                opt.zero_grad()
                mean.value().backward()
                opt.step()
                #+ mean.total, mean.number = 0.0, 0
        """,
    "a meter that can start again": """
        import torch, torch.nn as nn
        class Meter:
            def __init__(self):
                self.clear()
                self.total, self.number = 0.0, 0
            def add(self, term):
                self.total += term
                self.number += 1
            def clear(self):
                self.total = 0.0
                self.number = 0
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(3, 1)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
                self.meter = Meter()
            def update(self):
                self.opt.zero_grad()
                (self.meter.total / self.meter.number).backward()
                self.opt.step()
                #+ self.meter.clear()
            def fit(self):
                for it in range(6):
                    self.meter.add((self.net(torch.randn(4, 3)) - 1).pow(2).mean())
                    if it % 3 == 2:
                        self.update()
        torch.manual_seed(0)
        Trainer().fit()
        """,
    "a detach of an expression in parentheses": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            out = net(torch.randn(5, 4))
            #- loss = {"fit": (out - 1).detach().pow(2).mean()}
            #+ loss = {"fit": (out - 1).pow(2).mean()}
            opt.zero_grad()
            loss["fit"].backward()
            opt.step()
        """,
    "a loss that is computed and not returned": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def criterion(out):
            error = out - 1
            value = error.pow(2).mean()
            #+ return value
        for it in range(2):
            opt.zero_grad()
            loss = criterion(net(torch.randn(5, 4)))
            loss.backward()
            opt.step()
        """,
    "a detach that rebinds the variable of a loop": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        class Tracker(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.LSTMCell(4, 8)
                self.memory = (torch.zeros(3, 8), torch.zeros(3, 8))
            def forward(self, x):
                self.memory = self.cell(x, self.memory)
                return self.memory[0].sum()
            def cut(self):
                for each in self.memory:
                    each = each.detach()
                #+ self.memory = tuple(each.detach() for each in self.memory)
        net = Tracker()
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(3):
            net.cut()
            loss = net(torch.randn(3, 4)) + net(torch.randn(3, 4))
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "features outside a closure": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        body, head = nn.Linear(4, 3), nn.Linear(3, 1)
        opt = torch.optim.LBFGS([*body.parameters(), *head.parameters()], max_iter=3)
        x, y = torch.randn(6, 4), torch.randn(6, 1)
        def epoch(inputs):
            #- hidden = torch.tanh(body(inputs))
            def evaluate():
                #+ hidden = torch.tanh(body(inputs))
                opt.zero_grad()
                loss = (head(hidden) - y).pow(2).mean()
                loss.backward()
                return loss
            opt.step(evaluate)
        for it in range(2):
            epoch(x)
        """,
    "a result that two reentrant checkpoints read": """
        import torch, torch.nn as nn
        from torch.utils.checkpoint import checkpoint
        torch.manual_seed(0)
        style, one, two = nn.Linear(2, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        opt = torch.optim.SGD([*style.parameters(), *one.parameters(), *two.parameters()], lr=0.1)
        stem = nn.Linear(3, 4)
        for it in range(2):
            scale = torch.sigmoid(style(torch.ones(5, 2)))
            h = stem(torch.randn(5, 3))
            for layer in (one, two):
                #- h = checkpoint(lambda v, layer=layer: layer(v) * scale, h, use_reentrant=True)
                #+ h = checkpoint(lambda v, layer=layer: layer(v) * scale, h, use_reentrant=False)
            loss = h.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a backward that is differentiated twice": """
        import torch, torch.nn as nn
        from torch.autograd.function import once_differentiable
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x ** 3
            @staticmethod
            #- @once_differentiable
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 3 * x ** 2
        torch.manual_seed(0)
        net = nn.Linear(1, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            x = torch.rand(6, 1, requires_grad=True)
            u = Cube.apply(net(x)).sum()
            (first,) = torch.autograd.grad(u, x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
            loss = (second - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a state and a window of states": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        cell, out = nn.GRUCell(4, 6), nn.Linear(6, 1)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], lr=0.1)
        h = torch.zeros(2, 6)
        hist = []
        for it in range(4):
            h = cell(torch.randn(2, 4), h)
            hist.append(h)
            hist = hist[-2:]
            loss = (out(torch.stack(hist).mean(0)) - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            #+ h = h.detach(); hist = [t.detach() for t in hist]
        """,
    "a constant of the same shape beside a cut": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 3)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            out = net(torch.randn(5, 4))
            #- loss = (torch.zeros_like(out) - out.detach() - 1).pow(2).mean()
            #+ loss = (torch.zeros_like(out) - out - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
}
NO_EDIT = {
    "a column taken beside the forward pass": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(2, 1)
        def slope(out, at):
            return torch.autograd.grad(out.sum(), at, create_graph=True)[0]
        points = torch.rand(5, 2, requires_grad=True)
        x = points[:, :1]
        u = net(points).pow(2)
        slope(u, x)
        """,
    "variables for a sum and its count": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        total, number = 0.0, 0
        for it in range(6):
            total += (net(torch.randn(4, 3)) - 1).pow(2).mean()
            number += 1
            if it % 2 == 1:
                opt.zero_grad()
                (total / number).backward()
                opt.step()
                #+ total, number = 0.0, 0
        """,
    "two cuts before the same parameters": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            s, s2 = torch.randn(5, 4), torch.randn(5, 4)
            #- q = net(s).data.max(1).values
            #+ q = net(s).max(1).values
            with torch.no_grad():
                target = net(s2)
            loss = (target.max(1).values - q).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a block with a target in it": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net, tgt = nn.Linear(4, 2), nn.Linear(4, 2)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for it in range(2):
            s, s2 = torch.randn(5, 4), torch.randn(5, 4)
            #- with torch.no_grad():
            #-     q = net(s).max(1).values
            #-     target = 1 + 0.9 * net(s2).max(1).values
            #+ q = net(s).max(1).values
            #+ with torch.no_grad():
            #+     target = 1 + 0.9 * net(s2).max(1).values
            loss = (q - target).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
}
UNKNOWN = {
    "a constant, beside a number for the log": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        def regulariser(weight):
            return torch.tensor(weight)
        history = []
        for it in range(2):
            fit = (net(torch.randn(5, 4)) - 1).pow(2).mean()
            history.append(fit.item())
            loss = regulariser(0.1 * it)
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a number that never was a tensor": """
        import torch, torch.nn as nn
        torch.manual_seed(0)
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        weight = 0.5
        def penalty():
            return weight * 2
        for it in range(2):
            fit = (net(torch.randn(5, 4)) - 1).pow(2).mean()
            print(fit.item())
            loss = penalty()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
}


def version(text: str, repaired: bool) -> str:
    other = "-" if repaired else "+"
    lines = [line for line in textwrap.dedent(text).strip("\n").split("\n") if f"#{other} " not in line]
    return "\n".join(re.sub(r"#[-+] ", "", line) for line in lines) + "\n"


def consumed(text: str) -> list[list[torch.Tensor | None]]:
    """Runs a program. Returns the gradients of each optimizer step."""
    steps: list[list[torch.Tensor | None]] = []

    def note(optimizer: Any, *_: Any) -> None:
        own = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        steps.append([None if each.grad is None else each.grad.clone() for each in own])

    hook = register_optimizer_step_pre_hook(note)
    recording = torch.is_grad_enabled()
    try:
        exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
    finally:
        hook.remove()
        torch.set_grad_enabled(recording)
    return steps


@pytest.fixture
def programs(warm: Warm, tmp_path: Path) -> Programs:
    return Programs(warm, tmp_path)


@pytest.mark.parametrize("name", CURED)
def test_the_first_help_gives_the_gradients_of_the_repaired_program(name: str, programs: Programs) -> None:
    text = version(CURED[name], repaired=False)
    error = programs.error(text)
    assert error.fixes[0].edits, error.fixes
    cured = consumed(programs.repaired(text, error))
    meant = consumed(version(CURED[name], repaired=True))
    assert cured
    assert len(cured) == len(meant)
    for found, expected in zip(cured, meant, strict=True):
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", NO_EDIT)
def test_where_nothing_shows_which_line_is_wrong_there_is_no_edit(name: str, programs: Programs) -> None:
    assert not any(fix.edits for fix in programs.error(version(NO_EDIT[name], repaired=False)).fixes)


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_number_that_leaves_torch_on_another_way_is_not_the_cause(name: str, programs: Programs) -> None:
    error = programs.error(version(UNKNOWN[name], repaired=False))
    lines = {label.span.line for label in error.labels}
    assert not any("item()" in version(UNKNOWN[name], repaired=False).split("\n")[line - 1] for line in lines)


def test_a_detach_without_effect_is_shown(programs: Programs) -> None:
    error = programs.error(version(CURED["a detach whose result is dropped"], repaired=False))
    assert "nothing uses this detached result" in [label.text for label in error.labels]


def test_a_detach_that_only_rebinds_a_variable_is_shown(programs: Programs) -> None:
    error = programs.error(version(CURED["a detach that rebinds the variable of a loop"], repaired=False))
    assert [label.span.line for label in error.labels if label.text == "nothing uses this detached result"] == [13]


def test_what_runs_once_for_all_passes_of_a_closure_is_the_cause(programs: Programs) -> None:
    error = programs.error(version(CURED["features outside a closure"], repaired=False))
    assert lines_of(error, "graph_built_here") == [7]


def test_the_result_is_computed_from_the_whole_of_which_a_part_was_requested(programs: Programs) -> None:
    error = programs.error(version(NO_EDIT["a column taken beside the forward pass"], repaired=False))
    assert [(label.span.line, label.text) for label in error.labels if label.role == "graph_built_here"] == [
        (8, "`out.sum()` is computed from `points`")
    ]
    assert error.fixes[0].title == "compute `out.sum()` from `x`, not from `points`"


def test_a_cut_behind_a_cut_is_shown(programs: Programs) -> None:
    error = programs.error(version(CURED["a cut behind a cut"], repaired=False))
    assert lines_of(error, "graph_cut_here") == [8, 7]


TIED = """
    import torch
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.read, self.write = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.write.weight.data = self.read.weight.data
    net = Tied()
    net.write(torch.ones(2, 3)).sum().backward()
    """


def test_parameters_that_share_memory_are_tied_by_assignment(programs: Programs) -> None:
    found, after = programs.helped(version(TIED, repaired=False))
    assert found.code == "branch-detached"
    assert ".data" not in after
    assert "self.write.weight = self.read.weight\n" in after
