"""Spoken-command style classifier on synthetic chirps, with a small callback-driven trainer."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = 11
CLASSES = 5
LENGTH = 256


def make_clips(n, rng, label_noise=0.0):
    t = np.arange(LENGTH) / LENGTH
    y = rng.integers(0, CLASSES, n)
    start = 8 + 4 * y + rng.normal(0, 0.8, n)
    sweep = np.where(y % 2 == 0, 10.0, -4.0) + rng.normal(0, 1.0, n)
    phase = rng.uniform(0, 2 * math.pi, n)
    x = np.sin(2 * math.pi * (start[:, None] * t + 0.5 * sweep[:, None] * t**2) + phase[:, None])
    x = x + rng.normal(0, 1.3, x.shape)
    flip = rng.random(n) < label_noise
    y = np.where(flip, rng.integers(0, CLASSES, n), y)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class SpectrumNet(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.net = nn.Sequential(
            nn.Linear(33 * 7, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
        )

    def forward(self, wave):
        frames = wave.unfold(1, 64, 32) * self.window
        spec = torch.log1p(torch.fft.rfft(frames).abs())
        return self.net(spec.flatten(1))


class BestWeights:
    """Remembers the weights of the epoch with the lowest validation loss."""

    def __init__(self):
        self.best_loss = float("inf")
        self.best_epoch = -1
        self.weights = None

    def on_epoch_end(self, epoch, model, val_loss):
        if val_loss < self.best_loss:
            self.best_loss = val_loss
            self.best_epoch = epoch
            self.weights = {k: v.detach().cpu() for k, v in model.state_dict().items()}

    def on_train_end(self, model):
        model.load_state_dict(self.weights)


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    logits = model(x)
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def fit(model, loader, val, epochs, callbacks):
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        val_loss, val_acc = evaluate(model, *val)
        for cb in callbacks:
            cb.on_epoch_end(epoch, model, val_loss)
        if epoch % 10 == 0:
            print(f"epoch {epoch:2d}  train {loss.item():.3f}  val {val_loss:.3f}  acc {val_acc:.3f}")
    for cb in callbacks:
        cb.on_train_end(model)


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    train = make_clips(400, rng, label_noise=0.3)
    val = make_clips(300, rng)
    test = make_clips(600, rng)
    loader = DataLoader(TensorDataset(*train), batch_size=50, shuffle=True)
    model = SpectrumNet()
    keeper = BestWeights()
    fit(model, loader, val, epochs=80, callbacks=[keeper])
    val_loss, _ = evaluate(model, *val)
    test_loss, test_acc = evaluate(model, *test)
    print(f"best epoch {keeper.best_epoch}, its val loss {keeper.best_loss:.3f}")
    print(f"final val loss {val_loss:.3f}  test loss {test_loss:.3f}  test acc {test_acc:.3f}")


if __name__ == "__main__":
    main()
