"""Contrastive alignment of two modalities with a learned temperature."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class DualEncoder(nn.Module):
    def __init__(self, dim_a, dim_b, dim=16, max_scale=10.0):
        super().__init__()
        self.tower_a = nn.Sequential(nn.Linear(dim_a, 48), nn.GELU(), nn.Linear(48, dim))
        self.tower_b = nn.Sequential(nn.Linear(dim_b, 48), nn.GELU(), nn.Linear(48, dim))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
        self.max_log_scale = math.log(max_scale)

    def forward(self, a, b):
        za = F.normalize(self.tower_a(a), dim=1)
        zb = F.normalize(self.tower_b(b), dim=1)
        scale = self.logit_scale.clamp(max=self.max_log_scale).exp()
        return scale * za @ zb.t()


def symmetric_loss(logits):
    target = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def make_pairs(n):
    common = torch.randn(n, 6)
    a = common @ torch.randn(6, 20) + 0.3 * torch.randn(n, 20)
    b = common @ torch.randn(6, 14) + 0.3 * torch.randn(n, 14)
    return a, b


def main():
    torch.manual_seed(23)
    a, b = make_pairs(512)
    model = DualEncoder(20, 14)
    no_decay = [model.logit_scale]
    decay = [p for n, p in model.named_parameters() if n != "logit_scale"]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3
    )
    for epoch in range(8):
        for idx in torch.randperm(512).split(64):
            logits = model(a[idx], b[idx])
            loss = symmetric_loss(logits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        top1 = (logits.argmax(1) == torch.arange(len(idx))).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} top1 {top1:.3f} scale {model.logit_scale.exp().item():.2f}")
    return model


if __name__ == "__main__":
    main()
