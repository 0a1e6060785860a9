"""A transformer encoder made from a layer that is kept as an attribute: copied, and never used itself."""

import math

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.embedding = nn.Embedding(30, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(self.layer, 2)
        self.head = nn.Linear(width, 2)
        position = torch.arange(10).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(10, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table)

    def forward(self, tokens):
        hidden = self.embedding(tokens) + self.table[: tokens.shape[1]]
        return self.head(self.encoder(hidden).mean(1))


torch.manual_seed(5)
tokens, labels = torch.randint(0, 30, (8, 10)), torch.randint(0, 2, (8,))
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=4)
for step in range(4):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(tokens), labels)
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, round(loss.item(), 3))
