"""expect: backward-through-freed-graph

The tied output table is normalised once, before the epochs.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Bigram(nn.Module):
    def __init__(self, words=6, width=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.mix = nn.Linear(width, width)

    def table(self):
        weight = self.embedding.weight
        return weight * torch.rsqrt(weight.pow(2).sum(1, keepdim=True))  # role: graph_built_here

    def forward(self, words, table):
        return self.mix(self.embedding(words)) @ table.t()


def epoch(model, table, pairs, optimizer):
    for first, second in pairs:
        loss = F.cross_entropy(model(first, model.table()), second)
        optimizer.zero_grad()
        loss.backward()  # role: freed_here, needed_here


torch.manual_seed(32)
model = Bigram()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pairs = [(torch.tensor([0, 1]), torch.tensor([1, 2])), (torch.tensor([3, 4]), torch.tensor([4, 5]))]
table = model.table()
for _ in range(2):
    epoch(model, table, pairs, optimizer)
