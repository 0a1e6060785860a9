"""RealNVP density estimation of jet observables, with early stopping on the best checkpoint."""
import io
import math

import torch
import torch.nn as nn

torch.manual_seed(21)

DIM, LAYERS = 6, 6


def simulate_jets(n):
    """Mass, width and four substructure variables of two jet classes; strongly correlated."""
    boosted = (torch.rand(n) < 0.4).float()
    mass = 1.0 + 1.5 * boosted + 0.3 * torch.randn(n)
    width = mass.pow(2) * 0.4 + 0.1 * torch.randn(n)
    tau21 = torch.sigmoid(2.0 - 3.0 * boosted + 0.4 * torch.randn(n)) * 2
    tau32 = tau21 * width * 0.5 + 0.1 * torch.randn(n)
    ecf = torch.log1p(mass + width.abs()) + 0.05 * torch.randn(n)
    girth = torch.sin(2 * mass) + 0.1 * torch.randn(n)
    return torch.stack([mass, width, tau21, tau32, ecf, girth], dim=1)


class Permutation(nn.Module):
    """Shuffles the coordinates so that each of them gets transformed."""

    def __init__(self, dim):
        super().__init__()
        self.order = torch.randperm(dim)

    def forward(self, x):
        return x[:, self.order], x.new_zeros(len(x))


class Coupling(nn.Module):
    def __init__(self, dim, hidden=48):
        super().__init__()
        self.keep = dim // 2
        self.net = nn.Sequential(
            nn.Linear(self.keep, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 2 * (dim - self.keep)),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, :self.keep], x[:, self.keep:]
        log_s, shift = self.net(a).chunk(2, dim=1)
        log_s = 2.0 * torch.tanh(log_s / 2.0)
        return torch.cat([a, b * log_s.exp() + shift], dim=1), log_s.sum(dim=1)


class RealNVP(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.register_buffer("loc", torch.zeros(dim))
        self.register_buffer("scale", torch.ones(dim))
        self.steps = nn.ModuleList()
        for _ in range(layers):
            self.steps += [Coupling(dim), Permutation(dim)]

    def fit_scaler(self, x):
        self.loc.copy_(x.mean(0))
        self.scale.copy_(x.std(0))

    def log_prob(self, x):
        z = (x - self.loc) / self.scale
        log_det = -self.scale.log().sum().expand(len(x))
        for step in self.steps:
            z, ld = step(z)
            log_det = log_det + ld
        return log_det - 0.5 * z.pow(2).sum(1) - 0.5 * z.size(1) * math.log(2 * math.pi)


def evaluate(flow, x):
    flow.eval()
    with torch.no_grad():
        return -flow.log_prob(x).mean().item()


train_x, valid_x, test_x = simulate_jets(3000), simulate_jets(1000), simulate_jets(1000)
flow = RealNVP(DIM, LAYERS)
flow.fit_scaler(train_x)
optimizer = torch.optim.AdamW(flow.parameters(), lr=2e-3, weight_decay=1e-5)
checkpoint, best = io.BytesIO(), float("inf")

for epoch in range(10):
    flow.train()
    for batch in train_x[torch.randperm(len(train_x))].split(100):
        loss = -flow.log_prob(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    valid_nll = evaluate(flow, valid_x)
    if valid_nll < best:
        best = valid_nll
        checkpoint = io.BytesIO()
        torch.save(flow.state_dict(), checkpoint)
    print(f"epoch {epoch}: valid nll {valid_nll:.3f}")

# final numbers, from the best checkpoint in a fresh model
checkpoint.seek(0)
final = RealNVP(DIM, LAYERS)
final.load_state_dict(torch.load(checkpoint))
test_nll = evaluate(final, test_x)
print(f"best valid nll {best:.3f}  test nll {test_nll:.3f}")
