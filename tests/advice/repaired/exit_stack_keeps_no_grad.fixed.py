"""expect: element-does-not-require-grad

An evaluation context is pushed on an ExitStack that outlives the evaluation.
"""

import contextlib

import torch
from torch import nn


class Session(contextlib.ExitStack):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def evaluate(self, batch):
        self.model.eval()
        with torch.no_grad():
            accuracy = (self.model(batch).argmax(-1) == 0).float().mean()
        self.model.train()
        return accuracy.item()

    def fit(self, batch, target):
        logits = self.model(batch)  # role: graph_cut_here
        return nn.functional.cross_entropy(logits, target)


torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
weights = [p for p in model.parameters()]
optimizer = torch.optim.AdamW(weights)
x, y = torch.randn(6, 4), torch.randint(3, (6,))
with Session(model) as session:
    for epoch in range(2):
        optimizer.zero_grad()
        loss = session.fit(x, y)
        loss.backward()  # role: needed_here
        optimizer.step()
        session.evaluate(x)
