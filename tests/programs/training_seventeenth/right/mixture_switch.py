"""Variational inference with a discrete latent: which of several linear regimes produced each series?

The regime is discrete, so the inference network is trained with the score function and a learned baseline;
the regimes' parameters are trained by the ordinary gradient of the log joint.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Normal

torch.manual_seed(2)
torch.set_num_threads(1)

K, T, N = 3, 16, 900
NOISE = 0.15
TRUE_A = torch.tensor([0.95, -0.7, 0.2])
TRUE_B = torch.tensor([0.1, 0.0, -0.8])


def simulate(n):
    regime = torch.randint(0, K, (n,))
    x = torch.randn(n)
    series = [x]
    for _ in range(T - 1):
        x = TRUE_A[regime] * x + TRUE_B[regime] + NOISE * torch.randn(n)
        series.append(x)
    return torch.stack(series, dim=1), regime


class Regimes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.tensor([0.9, -0.5, 0.0]))
        self.b = nn.Parameter(torch.tensor([0.0, 0.0, -0.6]))
        self.log_noise = nn.Parameter(torch.tensor(-1.0))

    def log_joint(self, x, z):
        mean = self.a[z].unsqueeze(1) * x[:, :-1] + self.b[z].unsqueeze(1)
        log_lik = Normal(mean, self.log_noise.exp()).log_prob(x[:, 1:]).sum(1)
        return log_lik - math.log(K)


class Encoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(T, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.logits = nn.Linear(width, K)

    def forward(self, x):
        return Categorical(logits=self.logits(self.trunk(x)))


series, regime = simulate(N)
regimes, encoder = Regimes(), Encoder()
baseline = nn.Sequential(nn.Linear(T, 32), nn.ReLU(), nn.Linear(32, 1))
opt_model = torch.optim.Adam(regimes.parameters(), lr=1e-2)
opt_guide = torch.optim.Adam(encoder.parameters(), lr=3e-3)
opt_base = torch.optim.Adam(baseline.parameters(), lr=1e-2)
scale = 1.0

for epoch in range(40):
    elbo_sum = 0.0
    explore = 0.5 * max(0.0, 1 - epoch / 20)
    for idx in torch.randperm(N).split(60):
        x = series[idx]
        q = encoder(x)
        z = q.sample()
        log_q = q.log_prob(z)
        log_p = regimes.log_joint(x, z)
        elbo = (log_p - log_q).detach()

        predicted = baseline(x).squeeze(1)
        advantage = (elbo - predicted.detach() * scale) / scale
        loss_guide = -(advantage * log_q).mean() - explore * q.entropy().mean()
        loss_model = -log_p.mean()
        loss_base = F.mse_loss(predicted, elbo / scale)
        scale = 0.9 * scale + 0.1 * max(1.0, elbo.std().item())

        for opt in (opt_model, opt_guide, opt_base):
            opt.zero_grad()
        (loss_guide + loss_model + loss_base).backward()
        for opt in (opt_model, opt_guide, opt_base):
            opt.step()
        elbo_sum += elbo.sum().item()
    if (epoch + 1) % 10 == 0:
        print(f"epoch {epoch + 1:2d}  ELBO {elbo_sum / N:.3f}  noise {regimes.log_noise.exp().item():.3f}")

with torch.no_grad():
    test_x, test_z = simulate(500)
    accuracy = (encoder(test_x).probs.argmax(1) == test_z).float().mean().item()
print("a", [round(v, 3) for v in regimes.a.tolist()], "b", [round(v, 3) for v in regimes.b.tolist()])
print(f"regime accuracy {accuracy:.3f}")
