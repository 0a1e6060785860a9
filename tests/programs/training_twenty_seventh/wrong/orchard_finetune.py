"""Forecast pretraining on many orchard sensor records, then fine-tuning on the few orchards with a measured yield.

The encoder is fine-tuned gently (its own small learning rate); the fresh regression head learns faster.
"""
import copy

import torch
from torch import nn
import torch.nn.functional as F

STEPS, SENSORS, HIDDEN = 24, 3, 32
ENCODER_LR, HEAD_LR = 1e-4, 2e-2
FINETUNE_STEPS = 120


def make_records(n, gen):
    """Each orchard has a hidden vigour and phase that shape its sensor curves and its yield."""
    vigour = torch.randn(n, 1, generator=gen)
    phase = torch.randn(n, 1, generator=gen)
    t = torch.linspace(0, 6.28, STEPS + 1)
    curves = torch.stack([
        torch.sin(t + phase) * (1 + 0.5 * vigour),
        torch.cos(2 * t - phase) + 0.5 * vigour,
        (0.3 * vigour) * t / 3 + 0.5 * torch.sin(3 * t + vigour),
    ], dim=2)
    curves = curves + 0.25 * torch.randn(curves.shape, generator=gen)
    # the measured yield is noisy, sites differ a lot in soil
    yields = vigour.squeeze(1) - 0.6 * phase.squeeze(1) + 0.7 * torch.randn(n, generator=gen)
    return curves, yields


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(SENSORS, HIDDEN, batch_first=True)
        self.norm = nn.LayerNorm(HIDDEN)

    def forward(self, x):
        return self.norm(self.rnn(x)[0])


def pretrain(encoder, curves, epochs=5):
    decoder = nn.Linear(HIDDEN, SENSORS)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=4e-3)
    for epoch in range(epochs):
        for batch in curves[torch.randperm(len(curves))].split(64):
            loss = F.mse_loss(decoder(encoder(batch[:, :-1])), batch[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"pretraining: one-step forecast mse {loss.item():.4f}")


class YieldModel(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(HIDDEN, 1)

    def forward(self, curves):
        return self.head(self.encoder(curves[:, :-1]).mean(dim=1)).squeeze(1)


def build_optimizer(model):
    optimizer = torch.optim.AdamW([
        {"params": model.encoder.parameters(), "lr": ENCODER_LR, "weight_decay": 0.0},
        {"params": model.head.parameters(), "lr": HEAD_LR, "weight_decay": 1e-3},
    ])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=HEAD_LR, total_steps=FINETUNE_STEPS, pct_start=0.3
    )
    return optimizer, scheduler


def finetune(model, curves, yields, held):
    optimizer, scheduler = build_optimizer(model)
    for step in range(FINETUNE_STEPS):
        idx = torch.randint(len(yields), (16,))
        loss = F.mse_loss(model(curves[idx]), yields[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 20 == 0:
            with torch.no_grad():
                error = F.mse_loss(model(held[0]), held[1]).item()
            print(f"step {step + 1:3d}: head lr {optimizer.param_groups[1]['lr']:.5f}, "
                  f"train mse {loss.item():.4f}, held-out mse {error:.4f}")
    return error


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    gen = torch.Generator().manual_seed(8)
    unlabelled, _ = make_records(1500, gen)
    curves, yields = make_records(24, gen)
    held = make_records(500, gen)

    model = YieldModel(Encoder())
    pretrain(model.encoder, unlabelled)
    pretrained = copy.deepcopy(model.encoder)
    error = finetune(model, curves, yields, held)
    print(f"held-out mse {error:.4f} (variance of the yields {held[1].var().item():.4f})")
    return model, pretrained, error


if __name__ == "__main__":
    model, pretrained, error = main()
