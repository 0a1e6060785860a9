import torch
from torch import nn

torch.manual_seed(43)


class CallNet(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 8, 7, stride=2), nn.ReLU(), nn.Conv1d(8, 8, 5, stride=2), nn.ReLU())
        self.head = nn.Linear(8, kinds)

    def forward(self, wave):
        return self.head(self.encoder(wave[:, None]).mean(-1))


class Augmented(nn.Module):
    def __init__(self, net, jitter=0.2):
        super().__init__()
        self.net, self.jitter = net, jitter

    def forward(self, wave):
        if self.training:
            wave = wave + self.jitter * torch.randn_like(wave)
        return self.net(wave)


def calls(kinds, pitch, n=32, length=96):
    kind = torch.randint(kinds, (n,))
    t = torch.arange(length) / 10.0
    return torch.sin(t * (pitch + kind[:, None]) + 6 * torch.rand(n, 1)), kind


def fit(model, kinds, pitch, steps, lr):
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for step in range(steps):
        wave, kind = calls(kinds, pitch)
        loss = nn.functional.cross_entropy(model(wave), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def freeze(model, prefix):
    for p in (p for name, p in model.named_parameters() if name.startswith(prefix)):
        p.requires_grad_(False)


model = Augmented(CallNet(kinds=5))
print(f"first stage loss {fit(model, 5, 1.0, 120, 0.05):.4f}")
before = model.net.encoder[0].weight.norm().item()

model.net.head = nn.Linear(8, 3)
freeze(model, prefix="net.encoder.")
print(f"second stage loss {fit(model, 3, 1.5, 60, 0.05):.4f}")
print(f"filter norm {before:.4f} / {model.net.encoder[0].weight.norm():.4f}")
