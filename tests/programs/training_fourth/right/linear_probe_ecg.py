"""Self-supervised features for heart-beat shapes, then a linear probe on top of the fixed encoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

T = 64


def beats(n):
    t = torch.linspace(-1, 1, T)
    label = torch.randint(0, 3, (n,))
    width = torch.tensor([0.06, 0.14, 0.06])[label] * (1 + 0.1 * torch.randn(n))
    second = torch.tensor([0.35, 0.35, -0.35])[label] + 0.05 * torch.randn(n)
    shift = 0.15 * torch.randn(n)
    tt = t[None] - shift[:, None]
    wave = torch.exp(-((tt / width[:, None]) ** 2))
    wave = wave + second[:, None] * torch.exp(-(((tt - 0.45) / 0.15) ** 2))
    return wave + 0.05 * torch.randn(n, T), label


class Encoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(T, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, dim))

    def forward(self, x):
        return self.net(x)


encoder = Encoder()
decoder = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, T))
unlabeled, _ = beats(1500)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
encoder.train()
for epoch in range(12):
    for x in unlabeled[torch.randperm(len(unlabeled))].split(100):
        noisy = x * (torch.rand_like(x) > 0.2)
        loss = F.mse_loss(decoder(encoder(noisy)), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
print(f"denoising loss {loss.item():.4f}")

# Linear probe: the protocol measures the features as they are, so only the linear layer learns.
encoder.requires_grad_(False)
encoder.eval()
probe = nn.Linear(12, 3)
probe_opt = torch.optim.Adam(probe.parameters(), lr=2e-2)
train_x, train_y = beats(300)
test_x, test_y = beats(600)
reference = [p.clone() for p in encoder.parameters()]

for epoch in range(30):
    order = torch.randperm(len(train_x))
    for idx in order.split(50):
        with torch.no_grad():
            features = encoder(train_x[idx])
        loss = F.cross_entropy(probe(features), train_y[idx])
        probe_opt.zero_grad()
        loss.backward()
        probe_opt.step()

with torch.no_grad():
    acc = (probe(encoder(test_x)).argmax(1) == test_y).float().mean().item()
assert all(torch.equal(a, b) for a, b in zip(reference, encoder.parameters()))
print(f"linear probe accuracy {acc:.3f}")
