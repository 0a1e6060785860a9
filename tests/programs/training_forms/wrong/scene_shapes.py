import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(47)


def soften(share, module, grad_in, grad_out):
    return tuple(None if g is None else g * share for g in grad_in)


class Softener:
    def __init__(self, share):
        self.share = share

    def on_start(self, net):
        self.bridge = net.bridge

    def on_epoch(self, epoch):
        self.epoch = epoch
        self.bridge.register_full_backward_hook(lambda *parts: soften(self.share, *parts))


class SceneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 12, 3), nn.ReLU(), nn.Flatten())
        self.bridge = nn.Identity()
        self.shape = nn.Linear(12 * 25, 3)

    def forward(self, images):
        return self.shape(self.bridge(self.trunk(images)))


class Loop:
    def __init__(self, net, callbacks):
        self.net, self.callbacks = net, callbacks
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self, images, kinds, epochs):
        for c in self.callbacks:
            c.on_start(self.net)
        for epoch in range(epochs):
            for c in self.callbacks:
                c.on_epoch(epoch)
            for rows in torch.randperm(len(images)).split(32):
                loss = F.cross_entropy(self.net(images[rows]), kinds[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            size = torch.stack([p.grad.norm() for p in self.net.trunk.parameters()]).norm().item()
            print(f"epoch {epoch} loss {loss.item():.4f} trunk gradient {size:.6f}")


def scenes(n):
    kinds = torch.randint(3, (n,))
    grid = torch.arange(16)
    rows, cols = grid[:, None].expand(16, 16), grid.expand(16, 16)
    basis = torch.stack([torch.sin(rows * 1.2), torch.sin(cols * 1.2), torch.sin((rows + cols) * 0.9)])
    return (basis[kinds] + 0.9 * torch.randn(n, 16, 16)).unsqueeze(1), kinds


Loop(SceneNet(), [Softener(0.5)]).fit(*scenes(256), epochs=6)
