"""expect: view-of-leaf-modified-inplace

The padding row of a tied table is cleared by assignment.
"""

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, words=8, width=4, padding=0):
        super().__init__()
        self.padding = padding
        self.embedding = nn.Embedding(words, width)  # role: leaf_made_here
        self.output = nn.Linear(width, words, bias=False)
        self.output.weight = self.embedding.weight

    def forget_padding(self):
        table = self.output.weight
        with torch.no_grad():
            table[self.padding] = 0.0  # role: view_made_here, rejected_here

    def forward(self, words):
        return self.output(self.embedding(words).mean(1))


torch.manual_seed(37)
model = TiedModel()
words = torch.tensor([[1, 2, 0], [3, 0, 0]])
optimizer = torch.optim.Adam(model.parameters())
loss = nn.functional.cross_entropy(model(words), torch.tensor([4, 5]))
optimizer.zero_grad()
loss.backward()
optimizer.step()
model.forget_padding()
