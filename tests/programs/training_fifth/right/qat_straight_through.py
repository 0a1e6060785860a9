"""8-level weights for a vibration-fault classifier, trained with a straight-through estimator."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize

torch.set_num_threads(1)
torch.manual_seed(13)


class EightLevels(nn.Module):
    def forward(self, w):
        scale = w.detach().abs().amax() / 3.5
        q = ((w / scale - 0.5).round().clamp(-4, 3) + 0.5) * scale
        return q.detach() + (w - w.detach())


def vibration(n, length=48):
    fault = torch.randint(3, (n,))
    t = torch.arange(length).float()
    base = torch.sin(0.5 * t + 6.28 * torch.rand(n, 1))
    ring = torch.exp(-((t % 16) / 4)) * torch.cos(2.2 * t)
    sideband = base * torch.sin(0.13 * t)
    x = base + (fault == 1).float()[:, None] * ring + (fault == 2).float()[:, None] * sideband
    return (x + 0.3 * torch.randn(n, length))[:, None], fault


class FaultNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 12, 9, stride=2)
        self.fc1 = nn.Linear(12 * 20, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


def accuracy(net, data):
    net.eval()
    with torch.no_grad():
        return (net(data[0]).argmax(1) == data[1]).float().mean().item()


train, test = vibration(900), vibration(300)
net = FaultNet()
for layer in (net.conv, net.fc1, net.fc2):
    parametrize.register_parametrization(layer, "weight", EightLevels())

opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.LinearLR(opt, start_factor=1.0, end_factor=0.05, total_iters=8)
for epoch in range(8):
    net.train()
    for idx in torch.randperm(900).split(45):
        loss = F.cross_entropy(net(train[0][idx]), train[1][idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    print(f"epoch {epoch} loss {loss.item():.3f} test {accuracy(net, test):.3f}")

for layer in (net.conv, net.fc1, net.fc2):
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
print("distinct weights per layer", [len(layer.weight.unique()) for layer in (net.conv, net.fc1, net.fc2)])
print("deployed accuracy", round(accuracy(net, test), 3))
