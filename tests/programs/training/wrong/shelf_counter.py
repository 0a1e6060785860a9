"""Two heads on a shared trunk: product class and number of items on the shelf."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(29)


class ShelfNet(nn.Module):
    def __init__(self, n_features=24, n_classes=5, prior=0.01):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_features, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.classify = nn.Linear(32, n_classes)
        self.count = nn.Linear(32, 1)
        nn.init.normal_(self.count.weight, std=0.01)
        nn.init.constant_(self.count.bias, -math.log((1 - prior) / prior))

    def forward(self, x):
        h = self.trunk(x)
        return self.classify(h), F.relu(self.count(h)).squeeze(1)


def make_shelves(n):
    x = torch.randn(n, 24)
    labels = (x[:, :5] + 0.5 * x[:, 5:10]).argmax(dim=1)
    counts = (3 + 2 * x[:, 10] + x[:, 11]).clamp(min=0).round()
    return x, labels, counts


class Trainer:
    def __init__(self, model, lr=3e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, x, labels, counts):
        logits, n_items = self.model(x)
        loss_cls = F.cross_entropy(logits, labels)
        loss_cnt = F.mse_loss(n_items, counts)
        self.optimizer.zero_grad()
        (loss_cls + 0.2 * loss_cnt).backward()
        self.optimizer.step()
        return loss_cls.item(), loss_cnt.item()

    def fit(self, data, epochs):
        x, labels, counts = data
        for epoch in range(epochs):
            cls_sum, cnt_sum, batches = 0.0, 0.0, 0
            for idx in torch.randperm(len(x)).split(64):
                c, n = self.step(x[idx], labels[idx], counts[idx])
                cls_sum, cnt_sum, batches = cls_sum + c, cnt_sum + n, batches + 1
            print(f"epoch {epoch}: class {cls_sum / batches:.4f} count {cnt_sum / batches:.4f}")


model = ShelfNet()
trainer = Trainer(model)
trainer.fit(make_shelves(640), epochs=8)
