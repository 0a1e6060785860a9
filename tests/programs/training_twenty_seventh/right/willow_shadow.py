"""Regression of river levels with averaged weights for validation, and an interruption half way."""
import contextlib
import copy
import io

import torch
import torch.nn as nn
import torch.nn.functional as F


def river_net(dim=8, hidden=48):
    return nn.Sequential(nn.Linear(dim, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Linear(hidden, 1), nn.Flatten(0))


class WeightAverage:
    """Exponential average of the weights with a ramp-up of the decay."""

    def __init__(self, model, decay=0.99):
        self.params = list(model.parameters())
        self.decay, self.count = decay, 0
        self.shadow = [p.detach().clone() for p in self.params]

    @torch.no_grad()
    def update(self):
        self.count += 1
        d = min(self.decay, (1 + self.count) / (10 + self.count))
        for s, p in zip(self.shadow, self.params):
            s.lerp_(p, 1 - d)

    @contextlib.contextmanager
    def applied(self):
        backup = [p.data for p in self.params]
        for p, s in zip(self.params, self.shadow):
            p.data = s
        try:
            yield
        finally:
            for p, b in zip(self.params, backup):
                p.data = b

    def state_dict(self):
        return {"count": self.count, "shadow": self.shadow}

    def load_state_dict(self, state):
        self.count = state["count"]
        self.shadow = [s.clone() for s in state["shadow"]]


class Run:
    def __init__(self, lr=1e-2):
        self.model = river_net()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.ema = WeightAverage(self.model)
        self.gen, self.best, self.best_state = torch.Generator().manual_seed(41), float("inf"), None

    def save(self, file):
        torch.save({"model": self.model.state_dict(), "opt": self.opt.state_dict(), "ema": self.ema.state_dict(),
                    "gen": self.gen.get_state(), "best": (self.best, self.best_state)}, file)

    def load(self, file):
        ckpt = torch.load(file)
        for name in ("model", "opt", "ema"):
            getattr(self, name).load_state_dict(ckpt[name])
        self.gen.set_state(ckpt["gen"])
        self.best, self.best_state = ckpt["best"]

    def train(self, data, val, epochs, batch_size=32):
        x, y = data
        for _ in range(epochs):
            for idx in torch.randperm(len(x), generator=self.gen).split(batch_size):
                loss = F.mse_loss(self.model(x[idx]), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.ema.update()
            raw = self.validate(val)
            with self.ema.applied():
                avg = self.validate(val)
                if avg < self.best:
                    self.best, self.best_state = avg, copy.deepcopy(self.model.state_dict())
        print(f"val mse: last weights {raw:.4f}, averaged {avg:.4f}, best {self.best:.4f}")

    @torch.no_grad()
    def validate(self, val):
        return F.mse_loss(self.model(val[0]), val[1]).item()


def make_data(n, gen, w):
    x = torch.randn(n, 8, generator=gen)
    return x, torch.sin(x @ w[0]) + 0.5 * x @ w[1] + 0.5 * torch.randn(n, generator=gen)


def main():
    gen = torch.Generator().manual_seed(40)
    w = torch.randn(2, 8, generator=gen) * 0.5
    data, val = make_data(800, gen, w), make_data(400, gen, w)
    torch.manual_seed(42)
    first = Run()
    first.train(data, val, epochs=8)
    file = io.BytesIO()
    first.save(file)
    file.seek(0)
    run = Run(lr=1.0)       # everything of interest comes from the file
    run.load(file)
    run.train(data, val, epochs=8)
    return run, first, data, val


if __name__ == "__main__":
    run, first, data, val = main()
