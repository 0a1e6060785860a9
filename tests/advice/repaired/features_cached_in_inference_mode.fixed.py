"""expect: inference-tensor-saved

Features of a frozen backbone are computed once in inference mode, then a head is trained on them.
"""

import torch
from torch import nn


@torch.no_grad()  # role: mode_entered_here
def extract(backbone, loader):
    cache = []
    for images, labels in loader:
        features = backbone(images).flatten(1)  # role: value_made_here
        cache.append((features, labels))
    return cache


torch.manual_seed(41)
backbone = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.AvgPool2d(2)).eval()
loader = [(torch.randn(3, 1, 6, 6), torch.tensor([0, 1, 0])) for _ in range(2)]
head = nn.Linear(8, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for features, labels in extract(backbone, loader):
    logits = head(features)  # role: rejected_here
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
