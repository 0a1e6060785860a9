"""Programs that are deep or wide: `python benchmarks/big_programs.py NAME SIZE` runs one of them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import torch


def chain(size: int) -> None:
    """A graph of SIZE nodes, one after the other."""
    x = torch.ones(4, requires_grad=True)
    y = x
    for _ in range(size):
        y = y * 1.0
    y.sum().backward()


def failing_chain(size: int) -> None:
    """A tensor that is changed too early, then SIZE nodes, then the backward pass that needs it."""
    y = torch.ones(4, requires_grad=True).exp()
    y.add_(1)
    for _ in range(size):
        y = y + 1.0
    y.sum().backward()


def items_in_place(size: int) -> None:
    """SIZE writes to items of one tensor, then backward."""
    x = torch.ones(4, requires_grad=True)
    y = torch.zeros(size)
    for position in range(size):
        y[position] += x[position % 4]
    y.sum().backward()


def stacked(size: int) -> None:
    """SIZE tensors: stacked, joined, and backward through both."""
    tensors = [torch.ones(2, requires_grad=True) for _ in range(size)]
    torch.stack(tensors).sum().backward()
    torch.cat(tensors).sum().backward()


def foreach(size: int) -> None:
    """`_foreach_*` over SIZE parameters, ten times."""
    parameters = [torch.ones(2, requires_grad=True) for _ in range(size)]
    for _ in range(10):
        steps = torch._foreach_mul([parameter.detach() for parameter in parameters], 0.1)
        with torch.no_grad():
            torch._foreach_sub_(parameters, list(steps))
        torch._foreach_norm(parameters)


def many_layers(size: int) -> None:
    """Five steps of Adam with clipping on a model of SIZE parameters."""
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(size // 2)])
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def hooks(size: int) -> None:
    """SIZE hooks that run in one backward pass."""
    tensors = [torch.ones(2, requires_grad=True) for _ in range(size)]
    seen: list[float] = []
    for tensor in tensors:
        tensor.register_hook(lambda gradient: seen.append(1.0))
    torch.stack([tensor * 3 for tensor in tensors]).sum().backward()


def threads(size: int) -> None:
    """SIZE threads, each with 100 backward passes of its own."""

    def work(number: int) -> None:
        weight = torch.ones(4, requires_grad=True)
        for _ in range(100):
            (weight * number).sum().backward()
            weight.grad = None

    workers = [threading.Thread(target=work, args=(number,)) for number in range(size)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def recursion(size: int) -> None:
    """Calls that are SIZE frames deep, 20 times."""

    def deeper(value: torch.Tensor, left: int) -> torch.Tensor:
        return value.sin() if left == 0 else deeper(value * 1.0, left - 1)

    x = torch.ones(2, requires_grad=True)
    for _ in range(20):
        deeper(x, size).sum().backward()


PROGRAMS: dict[Callable[[int], None], int] = {
    chain: 100_000,
    failing_chain: 100_000,
    items_in_place: 20_000,
    stacked: 10_000,
    foreach: 5_000,
    many_layers: 5_000,
    hooks: 10_000,
    threads: 64,
    recursion: 900,
}
"""Each program, and its largest size."""


if __name__ == "__main__":
    {program.__name__: program for program in PROGRAMS}[sys.argv[1]](int(sys.argv[2]))
