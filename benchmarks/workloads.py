"""Makes the workloads: each function returns one, as a function to call repeatedly."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

Workload = Callable[[], object]


def tiny_ops(rounds: int = 2_500) -> Workload:
    """20,000 ops of one to two microseconds: arithmetic, functions, a view, a reduction; with and without a graph."""
    x, y = torch.ones(4, requires_grad=True), torch.ones(4)

    def run() -> object:
        for _ in range(rounds):
            a = x * 2
            b = a + y
            c = b.sin()
            d = c - a
            e = d.relu()
            f = e.view(2, 2)
            g = f.sum()
            h = torch.exp(y)
        return g, h

    return run


def _training(model: nn.Module, optimizer: Any, loss_of: Callable[[], torch.Tensor], steps: int) -> Workload:
    def run() -> object:
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of().backward()
            optimizer.step()
        return model

    return run


def mlp(steps: int = 200) -> Workload:
    """200 steps of a small MLP with SGD."""
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, targets = torch.randn(32, 32), torch.randint(0, 10, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return _training(model, optimizer, lambda: F.cross_entropy(model(inputs), targets), steps)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.attend(self.before(x)).split(width, dim=2)
        q, k, v = (p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        out: torch.Tensor = x + self.feed(self.after(x))
        return out


class _Gpt(nn.Module):
    def __init__(self, words: int = 256, width: int = 128, layers: int = 4, length: int = 64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(_Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        logits: torch.Tensor = self.head(self.norm(self.blocks(x)))
        return logits


def gpt(steps: int = 10) -> Workload:
    """10 steps of a mini-GPT (4 layers, d=128, sequence 64, batch 4) with AdamW."""
    model = _Gpt()
    tokens = torch.randint(0, 256, (4, 65))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss() -> torch.Tensor:
        logits: torch.Tensor = model(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    return _training(model, optimizer, loss, steps)


def conv(steps: int = 5) -> Workload:
    """5 steps of a small convolutional net with batch norm."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    images, targets = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _training(model, optimizer, lambda: F.cross_entropy(model(images), targets), steps)


def _net(*sizes: int) -> nn.Sequential:
    layers = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class _ActorCritic:
    """A deterministic policy and its critic, with averages of both that follow through `.data`."""

    def __init__(self, seen: int = 8, done: int = 2, width: int = 64) -> None:
        self.actor, self.critic = _net(seen, width, width, done), _net(seen + done, width, width, 1)
        self.averages = copy.deepcopy((self.actor, self.critic))
        self.optimizers = [torch.optim.Adam(net.parameters(), lr=1e-3) for net in (self.actor, self.critic)]
        self.environment = np.random.default_rng(0).normal(size=(seen + done, seen)).astype(np.float32) * 0.1
        self.state = np.zeros(seen, dtype=np.float32)
        self.memory: list[tuple[Any, ...]] = []

    def act(self) -> None:
        with torch.no_grad():
            action = self.actor(torch.from_numpy(self.state).unsqueeze(0)).squeeze(0).numpy()
        before = self.state
        self.state = np.tanh(np.concatenate([before, action]) @ self.environment + 0.1)
        self.memory.append((before, action, np.float32(-np.square(self.state).sum()), self.state))

    def learn(self, batch: int = 32) -> None:
        chosen = np.random.default_rng(len(self.memory)).integers(0, len(self.memory), batch)
        parts = (np.array(part) for part in zip(*(self.memory[n] for n in chosen), strict=True))
        before, action, reward, after = map(torch.as_tensor, parts)
        with torch.no_grad():
            best = self.averages[1](torch.cat([after, self.averages[0](after)], dim=1)).squeeze(1)
            target = reward + 0.99 * best
        self._step(1, F.mse_loss(self.critic(torch.cat([before, action], dim=1)).squeeze(1), target))
        self._step(0, -self.critic(torch.cat([before, self.actor(before)], dim=1)).mean())
        for average, net in zip(self.averages, (self.actor, self.critic), strict=True):
            for follower, parameter in zip(average.parameters(), net.parameters(), strict=True):
                follower.data.mul_(0.995).add_(parameter.data, alpha=0.005)

    def _step(self, which: int, loss: torch.Tensor) -> None:
        self.optimizers[which].zero_grad()
        loss.backward()
        self.optimizers[which].step()


def actor_critic(steps: int = 50) -> Workload:
    """50 steps of an actor-critic loop (DDPG): NumPy observations, a memory of arrays, averages moved by `.data`."""

    def run() -> object:
        agent = _ActorCritic()
        for _ in range(steps):
            agent.act()
            agent.learn()
        return agent

    return run


def ode(steps: int = 60) -> Workload:
    """An ODE solver: 60 steps of Runge-Kutta through a small net, and backward through all of them."""
    field = _net(4, 32, 4)
    start = torch.randn(16, 4)

    def run() -> object:
        field.zero_grad()
        y, dt = start, torch.tensor(0.05)
        for _ in range(steps):
            k1 = field(y)
            k2 = field(y + dt * k1 / 2)
            k3 = field(y + dt * k2 / 2)
            k4 = field(y + dt * k3)
            y = y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        y.pow(2).mean().backward()
        return y

    return run


def long_lists(length: int = 10_000) -> Workload:
    """Lists of 10,000 tensors: made one by one, in `_foreach` ops, stacked, unbound, indexed, and a backward pass."""

    def run() -> object:
        leaves = [torch.ones(4, requires_grad=True) for _ in range(length)]
        scaled = torch._foreach_mul(leaves, 2.0)
        added = torch._foreach_add(scaled, leaves)
        rows = torch.stack(added).unbind(0)
        table = torch.cat(rows)
        parts = table.split(4)
        table.sum().backward()
        with torch.no_grad():
            torch._foreach_add_(leaves, [leaf.grad for leaf in leaves if leaf.grad is not None], alpha=-0.1)
        return parts

    return run


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "tiny ops": tiny_ops,
    "MLP": mlp,
    "mini-GPT": gpt,
    "conv net": conv,
    "actor-critic": actor_critic,
    "ODE solver": ode,
    "lists": long_lists,
}

SHORT: dict[str, Callable[[], Workload]] = {  # for observers that take some hundred times as long
    "tiny ops": partial(tiny_ops, 125),
    "MLP": partial(mlp, 10),
    "mini-GPT": partial(gpt, 1),
    "conv net": partial(conv, 1),
    "actor-critic": partial(actor_critic, 5),
    "ODE solver": partial(ode, 4),
    "lists": partial(long_lists, 500),
}
