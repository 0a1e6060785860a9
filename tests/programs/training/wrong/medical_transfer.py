"""Train a classifier on a fixed pretrained backbone with batch norm."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(conv_block(1, 6), conv_block(6, 12))

    def forward(self, x):
        return self.blocks(x).mean(dim=(2, 3))


class Diagnosis(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.backbone(x))


def scans(n, scale, shift):
    y = torch.randint(2, (n,))
    x = torch.randn(n, 1, 12, 12)
    x[:, 0, 4:8, 4:8] += 1.2 * y[:, None, None]
    return scale * x + shift, y


def pretrain(backbone):
    model = nn.Sequential(backbone, nn.Linear(12, 2))
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    x, y = scans(320, 1.0, 0.0)
    for _ in range(3):
        for idx in torch.randperm(len(x)).split(40):
            opt.zero_grad()
            F.cross_entropy(model(x[idx]), y[idx]).backward()
            opt.step()
    return model


def main():
    torch.manual_seed(113)
    source = pretrain(Backbone())
    x_src, y_src = scans(200, 1.0, 0.0)
    model = Diagnosis(source[0])
    before = copy.deepcopy(model.backbone.state_dict())
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    x, y = scans(320, 2.5, 1.5)
    x_val, y_val = scans(160, 2.5, 1.5)
    for epoch in range(4):
        model.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.4f} val acc {acc:.3f}")
    source.eval()
    with torch.no_grad():
        kept = (source(x_src).argmax(1) == y_src).float().mean()
    print(f"source task with the shared backbone: {kept:.3f}")
    return model, before


if __name__ == "__main__":
    main()
