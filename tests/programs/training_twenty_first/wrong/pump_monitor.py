"""Anomaly detection on pump vibration with an autoencoder.

The first stage trains on a cluster with a time limit and writes a checkpoint; the second stage
picks the run up, finishes it, and scores test windows with the averaged (EMA) weights.
"""
import copy
import io

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

WINDOW, CHANNELS = 64, 2
EMA_DECAY = 0.995


def vibration(n, faulty, rng):
    t = np.arange(WINDOW)[None, None, :]
    phase = rng.uniform(0, 2 * np.pi, size=(n, CHANNELS, 1))
    speed = rng.uniform(0.20, 0.24, size=(n, 1, 1))
    x = np.sin(2 * np.pi * speed * t + phase) + 0.4 * np.sin(4 * np.pi * speed * t + phase)
    if faulty:
        x = x + 0.2 * np.sin(2 * np.pi * 1.37 * speed * t + phase)
    x = x + 0.1 * rng.normal(size=x.shape)
    return torch.tensor(x, dtype=torch.float32)


class AutoEncoder(nn.Module):
    def __init__(self, code=10):
        super().__init__()
        size = WINDOW * CHANNELS
        self.encoder = nn.Sequential(nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, code))
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, size))

    def forward(self, x):
        return self.decoder(self.encoder(x.flatten(1))).view_as(x)


class WeightAverage:
    def __init__(self, model, decay=EMA_DECAY):
        self.decay = decay
        self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for avg, p in zip(self.model.parameters(), model.parameters()):
            avg.lerp_(p, 1 - self.decay)


def save(file, model, optimizer, step):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, file)
    file.seek(0)


def train(data, stop, checkpoint=None):
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    average = WeightAverage(model)
    step = 0
    if checkpoint is not None:
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    while step < stop:
        batch = data[torch.randint(0, len(data), (64,))]
        loss = F.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        step += 1
    return model, optimizer, average, loss.item()


@torch.no_grad()
def window_errors(model, x):
    return (model(x) - x).pow(2).mean(dim=(1, 2))


def auroc(normal, faulty):
    wins = (faulty[:, None] > normal[None, :]).float().mean()
    return wins.item()


torch.manual_seed(11)
rng = np.random.default_rng(11)
train_set = vibration(3000, False, rng)
test_normal, test_faulty = vibration(400, False, rng), vibration(400, True, rng)

model, optimizer, average, loss = train(train_set, stop=1600)
print(f"stage 1: loss {loss:.4f}")
checkpoint = io.BytesIO()
save(checkpoint, model, optimizer, step=1600)

model, optimizer, average, loss = train(train_set, stop=2000, checkpoint=checkpoint)
print(f"stage 2: loss {loss:.4f}")

scorer = average.model
normal_error, faulty_error = window_errors(scorer, test_normal), window_errors(scorer, test_faulty)
score = auroc(normal_error, faulty_error)
print(f"error normal {normal_error.mean():.4f}  faulty {faulty_error.mean():.4f}  AUROC {score:.3f}")
