"""Glacier melt regression on random Fourier features; the job is stopped half-way and resumed in a new object."""
import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_melt(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(count, 3))
    melt = np.sin(3 * x[:, 0]) * np.cos(2 * x[:, 1]) + 0.7 * np.exp(-3 * (x[:, 2] - 0.2) ** 2)
    return (torch.tensor(x, dtype=torch.float32),
            torch.tensor(melt + 0.05 * rng.normal(size=count), dtype=torch.float32))


class FourierFeatures(nn.Module):
    """Fixed projection; a function of its seed, so that checkpoints need not hold the matrix."""

    def __init__(self, inputs, features, scale, seed):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(scale * torch.randn(features, inputs, generator=g), requires_grad=False)

    def forward(self, x):
        phase = x @ self.weight.T
        return torch.cat([phase.cos(), phase.sin()], dim=-1)


class MeltNet(nn.Module):
    def __init__(self, features=128, feature_seed=77):
        super().__init__()
        self.fourier = FourierFeatures(3, features, scale=1.5, seed=feature_seed)
        self.mlp = nn.Sequential(nn.Linear(2 * features, 48), nn.ReLU(), nn.Dropout(0.05), nn.Linear(48, 1))

    def forward(self, x):
        return self.mlp(self.fourier(x)).squeeze(-1)


class Job:
    def __init__(self, data, total_epochs, seed):
        torch.manual_seed(seed)
        self.x, self.y = data
        self.model = MeltNet()
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(trainable, lr=3e-3, weight_decay=1e-3)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=1e-2, total_steps=total_epochs * 16)
        self.epoch = 0

    def save(self, target):
        weights = {k: v for k, v in self.model.state_dict().items() if not k.startswith("fourier.")}
        torch.save({"weights": weights, "optimizer": self.optimizer.state_dict(),
                    "scheduler": self.scheduler.state_dict(), "epoch": self.epoch,
                    "rng": torch.get_rng_state()}, target)

    def restore(self, source):
        state = torch.load(source, weights_only=True)
        outcome = self.model.load_state_dict(state["weights"], strict=False)
        assert not outcome.unexpected_keys and outcome.missing_keys == ["fourier.weight"], outcome
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"]
        torch.set_rng_state(state["rng"])

    def run(self, until):
        while self.epoch < until:
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(self.y)).chunk(16):
                loss = F.mse_loss(self.model(self.x[rows]), self.y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                total += loss.item() * len(rows)
            self.epoch += 1
            if self.epoch % 5 == 0:
                print(f"epoch {self.epoch:2d}  lr {self.scheduler.get_last_lr()[0]:.5f}  mse {total / len(self.y):.4f}")

    @torch.no_grad()
    def test(self, data):
        self.model.eval()
        return F.mse_loss(self.model(data[0]), data[1]).item()


if __name__ == "__main__":
    data, held_out = make_melt(1024, seed=1), make_melt(512, seed=2)
    disk = io.BytesIO()
    first = Job(data, total_epochs=30, seed=0)
    first.run(until=15)
    first.save(disk)
    print("stopped, test mse", round(first.test(held_out), 5))
    disk.seek(0)
    second = Job(data, total_epochs=30, seed=12345)
    second.restore(disk)
    print("resumed, test mse", round(second.test(held_out), 5))
    second.run(until=30)
    print("finished, test mse", round(second.test(held_out), 5))
