from functools import partial

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(19)


def damp(grad, factor):
    return grad * factor


class ReviewModel(nn.Module):
    def __init__(self, vocab=200, dim=24, classes=3):
        super().__init__()
        self.backbone = nn.ModuleDict({
            "emb": nn.EmbeddingBag(vocab, dim),
            "mix": nn.Linear(dim, dim),
        })
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        h = torch.tanh(self.backbone["mix"](self.backbone["emb"](ids)))
        return self.head(h)


class Trainer:
    def __init__(self, model, lr=0.3, backbone_scale=0.5):
        self.model = model
        self.scale = backbone_scale
        self.opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.8)

    def on_epoch_start(self):
        self.model.train()
        for p in self.model.backbone.parameters():
            p.register_hook(partial(damp, factor=self.scale))

    def run_epoch(self, ids, y, size=32):
        self.on_epoch_start()
        total = 0.0
        for idx in torch.randperm(len(ids)).split(size):
            loss = F.cross_entropy(self.model(ids[idx]), y[idx])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            total += loss.item() * len(idx)
        return total / len(ids)


def reviews(count=480, length=12, vocab=200, classes=3):
    polarity = torch.randn(vocab, classes)
    ids = torch.randint(vocab, (count, length))
    return ids, polarity[ids].sum(1).argmax(1)


ids, y = reviews()
trainer = Trainer(ReviewModel())
for epoch in range(8):
    print(f"epoch {epoch + 1} loss {trainer.run_epoch(ids, y):.4f}")
