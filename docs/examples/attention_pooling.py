import torch
from torch import nn

torch.manual_seed(0)


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(16, 1)
        self.value = nn.Linear(16, 8)

    def forward(self, tokens):  # (batch, tokens, 16)
        weights = torch.softmax(self.score(tokens), dim=-1)
        return (weights * self.value(tokens)).sum(1)


embed = nn.Embedding(50, 16)
pool = Pooling()
head = nn.Linear(8, 2)
optimizer = torch.optim.AdamW([*embed.parameters(), *pool.parameters()], lr=0.01)
words, labels = torch.randint(50, (32, 6)), torch.randint(2, (32,))
for _ in range(20):
    loss = nn.functional.cross_entropy(head(pool(embed(words))), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
