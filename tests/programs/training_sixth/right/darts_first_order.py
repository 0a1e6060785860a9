"""First-order DARTS: weights and architecture parameters are trained in turn by two optimizers."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MixedOp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ops = nn.ModuleList([
            nn.Identity(),
            nn.Sequential(nn.Linear(dim, dim), nn.ReLU()),
            nn.Sequential(nn.Linear(dim, dim), nn.Tanh()),
            nn.Sequential(nn.Linear(dim, dim), nn.Sigmoid()),
        ])

    def forward(self, x, weights):
        return sum(w * op(x) for w, op in zip(weights, self.ops))


class SuperNet(nn.Module):
    def __init__(self, in_dim, dim, classes, cells=3):
        super().__init__()
        self.stem = nn.Linear(in_dim, dim)
        self.cells = nn.ModuleList([MixedOp(dim) for _ in range(cells)])
        self.head = nn.Linear(dim, classes)
        self.alpha = nn.Parameter(1e-3 * torch.randn(cells, 4))

    def weight_parameters(self):
        return [p for name, p in self.named_parameters() if name != "alpha"]

    def arch_parameters(self):
        return [self.alpha]

    def forward(self, x):
        h = self.stem(x)
        for cell, a in zip(self.cells, F.softmax(self.alpha, dim=1)):
            h = cell(h, a)
        return self.head(h)

    def genotype(self):
        names = ["skip", "relu", "tanh", "sigmoid"]
        return [names[i] for i in self.alpha.argmax(1).tolist()]


def make_data(n, w):
    x = torch.randn(n, w[0].size(0))
    return x, (torch.tanh(x @ w[0]) @ w[1]).argmax(1)


def batches(x, y, size):
    while True:
        for idx in torch.randperm(x.size(0)).split(size):
            yield x[idx], y[idx]


torch.manual_seed(11)
w = (torch.randn(16, 24), torch.randn(24, 3))
x, y = make_data(1600, w)
x_test, y_test = make_data(600, w)
train_iter = batches(x[:800], y[:800], 64)
val_iter = batches(x[800:], y[800:], 64)

net = SuperNet(16, 24, 3)
opt_w = torch.optim.SGD(net.weight_parameters(), lr=0.05, momentum=0.9, weight_decay=3e-4)
opt_a = torch.optim.Adam(net.arch_parameters(), lr=1e-2, betas=(0.5, 0.999), weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt_w, T_max=300, eta_min=1e-3)
warmup = 60
for step in range(300):
    if step >= warmup:
        xv, yv = next(val_iter)
        opt_a.zero_grad()
        F.cross_entropy(net(xv), yv).backward()
        opt_a.step()

    xt, yt = next(train_iter)
    opt_w.zero_grad()
    loss = F.cross_entropy(net(xt), yt)
    loss.backward()
    nn.utils.clip_grad_norm_(net.weight_parameters(), 5.0)
    opt_w.step()
    schedule.step()
    if step % 75 == 74:
        with torch.no_grad():
            acc = (net(x_test).argmax(1) == y_test).float().mean().item()
        print(f"step {step} loss {loss.item():.3f} accuracy {acc:.3f} genotype {net.genotype()}")
