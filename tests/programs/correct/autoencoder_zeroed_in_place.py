"""A denoising autoencoder whose gradients are set to zero in place after each step, with momentum and weight decay."""

import torch
import torch.nn.functional as F
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 2))
        self.decoder = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 12))

    def forward(self, x):
        self.code = self.encoder(x)
        return self.decoder(self.code)


def main():
    torch.manual_seed(1)
    data = torch.randn(32, 12)
    model = Autoencoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    for epoch in range(4):
        noisy = data + 0.1 * torch.randn_like(data)
        loss = F.mse_loss(model(noisy), data) + 1e-3 * model.code.pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        print(f"{epoch}: {loss.item():.4f}")


main()
