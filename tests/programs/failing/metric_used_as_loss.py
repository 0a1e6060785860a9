"""expect: element-does-not-require-grad

A score from another file, which counts right answers, is maximised as if it were a loss.
"""

import torch
from _metrics import balanced_score
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(4, 8),  # role: leaf_made_here
            nn.ReLU(),
            nn.Linear(8, 3),  # role: leaf_made_here
        )

    def forward(self, x):
        return self.layers(x)


def objective(model, batch):
    x, labels = batch
    return {"score": balanced_score(model(x), labels), "size": len(labels)}


torch.manual_seed(23)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(9, 4), torch.arange(9) % 3) for _ in range(2)]
for batch in data:
    report = objective(model, batch)
    loss = 1 - report["score"]
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
