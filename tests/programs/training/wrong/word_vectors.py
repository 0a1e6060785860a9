"""Sentiment model that starts from pretrained word vectors and fine-tunes them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(163)
VOCAB, DIM, LENGTH = 80, 20, 10


def pretrained_vectors():
    groups = torch.randn(8, DIM)
    return groups.repeat_interleave(10, dim=0) + 0.3 * torch.randn(VOCAB, DIM)


class Sentiment(nn.Module):
    def __init__(self, vectors):
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, padding_idx=0)
        self.conv = nn.Conv1d(DIM, 24, 3, padding=1)
        self.fc = nn.Linear(24, 2)

    def forward(self, tokens):
        h = self.words(tokens).transpose(1, 2)
        h = F.relu(self.conv(h)).amax(dim=2)
        return self.fc(h)


def reviews(n, polarity):
    tokens = torch.randint(1, VOCAB, (n, LENGTH))
    return tokens, (polarity[tokens].sum(dim=1) > 0).long()


polarity = torch.randn(VOCAB)
polarity[0] = 0.0
train_x, train_y = reviews(640, polarity)
val_x, val_y = reviews(200, polarity)

model = Sentiment(pretrained_vectors())
optimizer = torch.optim.Adam(
    [
        {"params": model.words.parameters(), "lr": 1e-2},
        {"params": [*model.conv.parameters(), *model.fc.parameters()], "lr": 3e-3},
    ]
)

for epoch in range(8):
    model.train()
    for idx in torch.randperm(len(train_x)).split(64):
        loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(val_x).argmax(1) == val_y).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.4f} val acc {acc:.3f}")
