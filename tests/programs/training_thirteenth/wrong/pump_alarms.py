"""Fault alarms for pumps: pretraining on unlabelled telemetry, then fine-tuning on a few inspected machines.

1. A masked autoencoder learns from many unlabelled snapshots of 48 sensors; an exponential moving average of the
   encoder is kept, since it is smoother than the last iterate.
2. A checkpoint is written.
3. The alarm model starts from the averaged encoder and is tuned on 160 snapshots labelled by the maintenance crew.
"""
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SEED = 8
N_SENSORS, N_LATENT, WIDTH = 48, 5, 64
N_UNLABELLED, N_LABELLED, N_TEST = 8000, 160, 3000
PRETRAIN_STEPS, BATCH, MASK_RATE = 1500, 128, 0.3

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)

mix_a = rng.standard_normal((N_LATENT, N_SENSORS)) / N_LATENT ** 0.5
mix_b = rng.standard_normal((N_LATENT, N_SENSORS)) / N_LATENT ** 0.5
phase = rng.uniform(0, 6, N_SENSORS)


def snapshots(n):
    """The operating point drives all sensors; a fault shows as an unusual combination of two of its factors."""
    state = rng.standard_normal((n, N_LATENT))
    x = np.sin(1.2 * state @ mix_a + phase) + 0.4 * state @ mix_b + 0.5 * rng.standard_normal((n, N_SENSORS))
    fault = (state[:, 0] * state[:, 1] + 0.7 * state[:, 2] > 0.3).astype(np.float32)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(fault)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(N_SENSORS, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU())
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(self.layers(x))


class AlarmModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(self.encoder(x)).squeeze(1)


def pretrain(x, path):
    encoder, decoder = Encoder(), nn.Linear(WIDTH, N_SENSORS)
    averaged = AveragedModel(encoder, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    opt = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
    for step in range(PRETRAIN_STEPS):
        batch = x[torch.randint(len(x), (BATCH,))]
        hidden = torch.rand_like(batch) < MASK_RATE
        recon = decoder(encoder(batch.masked_fill(hidden, 0.0)))
        loss = F.mse_loss(recon[hidden], batch[hidden])
        opt.zero_grad()
        loss.backward()
        opt.step()
        averaged.update_parameters(encoder)
        if step % 500 == 499:
            print(f"pretraining step {step + 1}  masked error {loss.item():.4f}")
    torch.save({"encoder_ema": averaged.state_dict(), "decoder": decoder.state_dict(), "step": PRETRAIN_STEPS}, path)


def finetune(path, x, y):
    model = AlarmModel()
    checkpoint = torch.load(path)
    # the averaged weights come with a counter of updates that the encoder has no place for
    model.encoder.load_state_dict(checkpoint["encoder_ema"], strict=False)
    groups = [{"params": model.encoder.parameters(), "lr": 2e-4}, {"params": model.head.parameters(), "lr": 5e-3}]
    opt = torch.optim.AdamW(groups, weight_decay=0.01)
    for epoch in range(25):
        for rows in torch.randperm(len(y)).split(32):
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"fine-tuning loss {loss.item():.4f}")
    return model


pool, _ = snapshots(N_UNLABELLED)
few_x, few_y = snapshots(N_LABELLED)
test_x, test_y = snapshots(N_TEST)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "encoder.pt")
    pretrain(pool, path)
    model = finetune(path, few_x, few_y)
model.eval()
with torch.no_grad():
    accuracy = ((model(test_x) > 0).float() == test_y).float().mean().item()
print(f"test accuracy {accuracy:.4f}  (faults: {test_y.mean().item():.3f})")
