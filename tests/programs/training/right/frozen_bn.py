"""New classifier on a fixed convolutional backbone with batch norm."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def block(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.SiLU(), nn.MaxPool2d(2))


class Transfer(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        for p in self.backbone.parameters():
            p.requires_grad = False
        self.head = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.Dropout(0.1), nn.Linear(24, classes))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x).mean(dim=(2, 3)))


def scans(n, scale):
    y = torch.randint(2, (n,))
    x = torch.randn(n, 1, 12, 12)
    x[:, 0, 4:8, 4:8] += 1.5 * y[:, None, None]
    return scale * x, y


def pretrain(backbone):
    head = nn.Linear(12, 2)
    opt = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=5e-3)
    x, y = scans(320, 1.0)
    backbone.train()
    for _ in range(3):
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(head(backbone(x[idx]).mean(dim=(2, 3))), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return backbone


def main():
    torch.manual_seed(41)
    model = Transfer(pretrain(nn.Sequential(block(1, 6), block(6, 12))), 2)
    before = copy.deepcopy(model.backbone.state_dict())
    opt = torch.optim.Adam(model.head.parameters(), lr=1e-2)
    x, y = scans(320, 1.3)
    x_val, y_val = scans(160, 1.3)
    for epoch in range(5):
        model.train()
        for idx in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} val acc {acc:.3f}")
    after = model.backbone.state_dict()
    print("backbone unchanged:", all(torch.equal(before[k], after[k]) for k in before))


if __name__ == "__main__":
    main()
