import copy

import torch
from torch import nn


def curve(gen):
    slope, bend, shift = (torch.rand(3, generator=gen) * 2 - 1).tolist()
    return lambda x: torch.sin(2 * x + shift) + 0.3 * slope * x + 0.2 * bend * x * x


def inner_loop(model, f, gen, steps, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    x = torch.rand(12, 1, generator=gen) * 4 - 2
    y = f(x)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def move_towards(model, learner, rate):
    for p, q in zip(model.parameters(), learner.parameters()):
        p.add_(q - p, alpha=rate)


def query_loss(model, gen, steps):
    total = 0.0
    for _ in range(10):
        f = curve(gen)
        learner = copy.deepcopy(model)
        inner_loop(learner, f, gen, steps, 0.05)
        x = torch.linspace(-2, 2, 40)[:, None]
        with torch.no_grad():
            total += nn.functional.mse_loss(learner(x), f(x)).item() / 10
    return total


def main(meta_steps=60, inner_steps=6):
    torch.manual_seed(151)
    gen = torch.Generator().manual_seed(151)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    print(f"untrained query loss {query_loss(model, torch.Generator().manual_seed(7), inner_steps):.4f}")
    for step in range(meta_steps):
        learner = copy.deepcopy(model)
        loss = inner_loop(learner, curve(gen), gen, inner_steps, 0.05)
        move_towards(model, learner, rate=0.5 * (1 - step / meta_steps))
        if step % 15 == 14:
            print(f"meta step {step + 1} support loss {loss:.4f}")
    print(f"query loss {query_loss(model, torch.Generator().manual_seed(7), inner_steps):.4f}")
    return model


if __name__ == "__main__":
    main()
