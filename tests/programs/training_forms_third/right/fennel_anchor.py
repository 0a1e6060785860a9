import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(23)


def chunks_of(x, y, size):
    order = torch.randperm(len(x))
    return ((x[i], y[i]) for i in order.split(size))


def smallest(weight, share):
    cut = torch.quantile(weight.detach().abs().flatten(), share)
    return weight.detach().abs() > cut


class Sparse:
    def __init__(self, net, share):
        self.share = share
        self.keep = {}
        self.weights = {n: p for n, p in net.named_parameters() if p.dim() == 2}

    @torch.no_grad()
    def start(self):
        for name, weight in self.weights.items():
            keep = smallest(weight, self.share)
            weight.copy_(torch.where(keep, weight, torch.zeros(())))
            weight.register_hook(lambda g, keep=keep: g.masked_fill(~keep, 0.0))
            self.keep[name] = keep

    @torch.no_grad()
    def hold(self):
        for name, keep in self.keep.items():
            self.weights[name].mul_(keep)

    def zeros(self):
        return sum((w == 0).sum().item() for w in self.weights.values())


features = torch.randn(640, 12)
classes = (features[:, :3].prod(1) + features[:, 3] > 0).long()
net = nn.Sequential(nn.Linear(12, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 2))
names = dict(net.named_parameters())
sparse = Sparse(net, share=0.6)
optimizer = torch.optim.Adam(names.values(), lr=5e-3)

for epoch in range(14):
    if epoch == 6:
        sparse.start()
        print("zeros after the cut", sparse.zeros())
    for x, y in chunks_of(features, classes, 80):
        loss = nn.functional.cross_entropy(functional_call(net, names, (x,)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sparse.hold()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.4f}")

print("zeros at the end", sparse.zeros())
