"""Train a new head while the backbone is held fixed for the first stage."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(18, 40)
        self.fc2 = nn.Linear(40, 24)

    def forward(self, x):
        return F.relu(self.fc2(F.relu(self.fc1(x))))


class Model(nn.Module):
    def __init__(self, backbone, n_classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(24, n_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def pretrain_backbone(x, y):
    model = Model(Backbone(), 6)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(6):
        for idx in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(model(x[idx]), y[idx]).backward()
            opt.step()
    return model.backbone


def freeze_gradients(module):
    for p in module.parameters():
        p.grad.zero_()


def main():
    torch.manual_seed(79)
    x = torch.randn(640, 18)
    coarse = (x @ torch.randn(18, 6)).argmax(1)
    fine = ((x[:, :3] * x[:, 3:6]).sum(1) > 0).long()
    backbone = pretrain_backbone(x[:320], coarse[:320])
    model = Model(backbone, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    stage_one = 12
    for epoch in range(16):
        for idx in (320 + torch.randperm(320)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[idx]), fine[idx])
            loss.backward()
            if epoch < stage_one:
                freeze_gradients(model.backbone)
            optimizer.step()
        norm = sum(p.detach().pow(2).sum() for p in model.backbone.parameters()).sqrt()
        print(f"epoch {epoch}: loss {loss.item():.4f} backbone norm {norm:.4f}")


if __name__ == "__main__":
    main()
