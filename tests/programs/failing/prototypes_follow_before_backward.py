"""expect: saved-tensor-modified-inplace

Class prototypes follow the features with momentum, between the forward pass and the backward pass.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Prototypes(nn.Module):
    def __init__(self, classes, width, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("centres", F.normalize(torch.randn(classes, width), dim=1))

    def forward(self, features):
        return features @ self.centres.t() / 0.1  # role: saved_here

    @torch.no_grad()
    def follow(self, features, labels):
        for label in labels.unique():
            mean = features[labels == label].mean(0)
            centre = self.centres[label]
            centre.mul_(self.momentum).add_(mean, alpha=1 - self.momentum)  # role: modified_here


def step(encoder, prototypes, batch, labels):
    features = F.normalize(encoder(batch), dim=1)
    loss = F.cross_entropy(prototypes(features), labels)
    prototypes.follow(features, labels)
    return loss


torch.manual_seed(5)
encoder = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
prototypes = Prototypes(3, 4)
optimizer = torch.optim.AdamW(encoder.parameters())
for _ in range(2):
    loss = step(encoder, prototypes, torch.randn(9, 6), torch.arange(9) % 3)
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    optimizer.step()
