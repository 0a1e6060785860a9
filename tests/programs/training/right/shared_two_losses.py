"""Shared encoder, two objectives with one backward call each."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(46)


class SharedNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(15, 32), nn.ReLU())
        self.reconstruct = nn.Linear(32, 15)
        self.classify = nn.Linear(32, 3)


def encoder_norm(model):
    return torch.stack([p.grad.norm() for p in model.encoder.parameters()]).norm().item()


def step(model, opt, x, y):
    opt.zero_grad()
    h = model.encoder(x)
    loss_cls = F.cross_entropy(model.classify(h), y)
    loss_rec = 0.5 * F.mse_loss(model.reconstruct(h), x)
    loss_cls.backward(retain_graph=True)
    norm_cls = encoder_norm(model)
    loss_rec.backward()
    norm_both = encoder_norm(model)
    opt.step()
    return loss_cls.item(), loss_rec.item(), norm_cls, norm_both


x = torch.randn(512, 15) @ torch.randn(15, 15) / 15**0.5
y = x[:, :3].argmax(dim=1)
model = SharedNet()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    rows = []
    for idx in torch.randperm(len(x)).split(64):
        rows.append(step(model, opt, x[idx], y[idx]))
    cls, rec, norm_cls, norm_both = (sum(c) / len(rows) for c in zip(*rows))
    print(f"epoch {epoch}: class {cls:.4f} rec {rec:.4f} encoder gradient {norm_cls:.3f} -> {norm_both:.3f}")
