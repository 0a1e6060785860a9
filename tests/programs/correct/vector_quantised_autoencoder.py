"""A vector-quantised autoencoder: a straight-through Function, a commitment loss, a codebook that follows its members."""

import torch
from torch import nn


class Nearest(torch.autograd.Function):
    """The nearest code; the gradient goes to the encoder as if nothing had been rounded."""

    @staticmethod
    def forward(ctx, z, codes):
        index = torch.cdist(z, codes).argmin(1)
        ctx.mark_non_differentiable(index)
        return codes[index], index

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient, None


torch.manual_seed(2)
data = torch.randn(160, 8) @ torch.randn(8, 8)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 8))
codes = torch.randn(12, 4)
size, total = torch.ones(12), codes.clone()
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
used = set()
for step in range(30):
    batch = data[torch.randint(160, (40,))]
    z = encoder(batch)
    q, index = Nearest.apply(z, codes)
    loss = nn.functional.mse_loss(decoder(q), batch) + 0.25 * nn.functional.mse_loss(z, q.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        member = nn.functional.one_hot(index, 12).float()
        size.mul_(0.95).add_(member.sum(0), alpha=0.05)
        total.mul_(0.95).add_(member.T @ z.detach(), alpha=0.05)
        codes.copy_(total / size.clamp(min=1e-3).unsqueeze(1))
    used.update(index.tolist())
print(len(used) >= 1, loss.item() > 0)
