"""A small causal transformer with tied weights, a schedule and clipping."""

import torch
from torch import nn
from torch.nn import functional as F


class LanguageModel(nn.Module):
    def __init__(self, words=11, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, words, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        length = tokens.shape[1]
        hidden = torch.ones(length, length).triu_(1).bool()
        return self.out(self.layers(self.embed(tokens), mask=hidden))


torch.manual_seed(15)
model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
for _ in range(3):
    tokens = torch.randint(1, 11, (2, 6))
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 11), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
print("done")
