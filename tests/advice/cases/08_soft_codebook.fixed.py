"""Autoencoder with softly assigned codebook vectors kept by moving averages."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftQuantizer(nn.Module):
    def __init__(self, n_codes=12, dim=6, decay=0.95, tau=1.0):
        super().__init__()
        self.decay, self.tau = decay, tau
        self.register_buffer("codes", torch.randn(n_codes, dim))
        self.register_buffer("usage", torch.ones(n_codes))

    @torch.no_grad()
    def _refresh(self, flat, weight):
        self.usage.mul_(self.decay).add_(weight.sum(0), alpha=1 - self.decay)
        centre = (weight.t() @ flat) / weight.sum(0, keepdim=True).t().clamp_min(1e-5)
        self.codes.mul_(self.decay).add_(centre, alpha=1 - self.decay)

    def forward(self, z):
        distance = (z.unsqueeze(1) - self.codes).pow(2).sum(-1)
        weight = F.softmax(-distance / self.tau, dim=1)
        quantized = weight @ self.codes.clone()
        commit = F.mse_loss(z, quantized.detach())
        if self.training:
            self._refresh(z.detach(), weight.detach())
        return quantized, commit


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 24), nn.GELU(), nn.Linear(24, 6))
        self.quantizer = SoftQuantizer()
        self.decoder = nn.Sequential(nn.Linear(6, 24), nn.GELU(), nn.Linear(24, 10))

    def forward(self, x):
        quantized, commit = self.quantizer(self.encoder(x))
        return self.decoder(quantized), commit


def main():
    torch.manual_seed(7)
    model = AutoEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(3):
        x = torch.randn(20, 10)
        recon, commit = model(x)
        loss = F.mse_loss(recon, x) + 0.25 * commit
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
