"""Transfer learning: a frozen pretrained trunk, a small adapter and a new head for a few wound photos."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)
SIDE = 12
N_PRE, N_NEW = 8, 3

motifs = F.avg_pool2d(torch.randn(N_PRE, 2, SIDE, SIDE), 3, stride=1, padding=1) * 3


def pretext(n):
    y = torch.randint(0, N_PRE, (n,))
    return motifs[y] + torch.randn(n, 2, SIDE, SIDE), y


def wounds(n):
    """Each new class is a blend of two motifs the trunk has met, under a warmer lamp."""
    y = torch.randint(0, N_NEW, (n,))
    mix = 0.3 + 0.4 * torch.rand(n, 1, 1, 1)
    x = mix * motifs[2 * y] + (1 - mix) * motifs[2 * y + 1]
    return 0.8 * x + 0.3 + torch.randn(n, 2, SIDE, SIDE), y


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(block(2, 16), nn.MaxPool2d(2), block(16, 24), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.drop(self.blocks(x))


class WoundNet(nn.Module):
    def __init__(self, trunk):
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        self.down, self.up = nn.Linear(216, 16), nn.Linear(16, 216)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(216, N_NEW)
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            f = self.trunk(x)
        f = f + self.up(F.relu(self.down(f)))
        return self.head(self.drop(f))


def fit(net, x, y, lr, epochs):
    todo = [p for p in net.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(todo, lr=lr, weight_decay=1e-3)
    net.train()
    for _ in range(epochs):
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


trunk = Trunk()
pre = nn.Sequential(trunk, nn.Linear(216, N_PRE))
pre_loss = fit(pre, *pretext(1000), lr=3e-3, epochs=4)
print(f"pretext loss {pre_loss:.3f}  accuracy {accuracy(pre, *pretext(500)):.3f}")

before = copy.deepcopy(trunk.state_dict())
few, test = wounds(48), wounds(800)
net = WoundNet(trunk)
for stage in range(4):
    loss = fit(net, *few, lr=2e-3, epochs=10)
    print(f"stage {stage}  loss {loss:.3f}  wounds accuracy {accuracy(net, *test):.3f}  |up| {net.up.weight.norm().item():.3f}")

same = all(torch.equal(v, before[k]) for k, v in net.trunk.state_dict().items())
print("trunk as pretrained, statistics included:", same)
print(f"pretext accuracy afterwards {accuracy(pre, *pretext(500)):.3f}")
