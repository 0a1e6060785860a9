"""The table of a language model grows after the optimizer was made."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.table = nn.Embedding(words, 8)
        self.cell = nn.GRU(8, 8, batch_first=True)

    def grow(self, words):
        old = self.table
        self.table = nn.Embedding(words, 8)  # role: replaced_here
        with torch.no_grad():
            self.table.weight[: old.num_embeddings] = old.weight

    def forward(self, tokens):
        return self.cell(self.table(tokens))[0] @ self.table.weight.T


torch.manual_seed(0)
model = Model(10)
model.grow(14)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
tokens = torch.randint(14, (6, 9))
for step in range(4):
    scores = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # role: needed_here
print("done")
