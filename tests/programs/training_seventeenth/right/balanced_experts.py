"""Mixture-of-experts regression head on token vectors, balanced without an auxiliary loss (Wang et al. 2024).

A per-expert offset is added to the router's scores for choosing the experts only; the mixing weights come from the
plain scores. After each step the offset of overloaded experts goes down and that of underloaded ones up.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)

DIM, EXPERTS, TOP_K, GROUPS = 16, 6, 2, 6
OFFSET_SPEED = 0.01

centres = F.normalize(torch.randn(GROUPS, DIM), dim=-1) * 3
maps = torch.randn(GROUPS, DIM, 4) / DIM ** 0.5
# token groups are far from equally frequent
frequency = torch.tensor([0.45, 0.25, 0.12, 0.08, 0.06, 0.04])


def token_batch(n):
    group = torch.multinomial(frequency, n, replacement=True)
    x = centres[group] + torch.randn(n, DIM)
    y = torch.einsum("nd,ndo->no", x, maps[group]).tanh()
    return x, y


class BalancedExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(DIM, EXPERTS)
        self.up = nn.Parameter(torch.randn(EXPERTS, DIM, 24) / DIM ** 0.5)
        self.down = nn.Parameter(torch.randn(EXPERTS, 24, 4) / 24 ** 0.5)
        self.register_buffer("offset", torch.zeros(EXPERTS))
        self.register_buffer("load", torch.zeros(EXPERTS))

    def forward(self, x):
        affinity = self.router(x).sigmoid()
        with torch.no_grad():
            chosen = (affinity + self.offset).topk(TOP_K, dim=-1).indices
            if self.training:
                self.load += torch.bincount(chosen.flatten(), minlength=EXPERTS)
        weights = affinity.gather(-1, chosen)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        every = torch.einsum("neh,eho->neo", F.gelu(torch.einsum("nd,edh->neh", x, self.up)), self.down)
        picked = every.gather(1, chosen[..., None].expand(-1, -1, every.shape[-1]))
        return (weights[..., None] * picked).sum(dim=1)

    @torch.no_grad()
    def rebalance(self):
        self.offset += OFFSET_SPEED * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


def train(balanced, steps=500):
    torch.manual_seed(99)
    model = BalancedExperts()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    recent = torch.zeros(EXPERTS)
    for step in range(steps):
        x, y = token_batch(256)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= steps - 50:
            recent += model.load
        if balanced:
            model.rebalance()
        else:
            model.load.zero_()
    return model, recent / recent.sum()


test_x, test_y = token_batch(2000)
for balanced in (False, True):
    model, share = train(balanced)
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(test_x), test_y).item()
    print(f"balanced={balanced}: test error {error:.4f}, largest share {share.max().item():.3f}, "
          f"smallest share {share.min().item():.3f}")
