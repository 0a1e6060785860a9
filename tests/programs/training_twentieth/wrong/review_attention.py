"""Sentiment of variable-length 'reviews' with one self-attention layer and mean pooling."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

torch.manual_seed(21)

PAD = 0
VOCAB = 40
NEGATION = 1
MAX_LEN = 18
EPOCHS = 6


def make_review():
    """Filler words and one opinion word (2-9 good, 10-17 bad); a negation anywhere flips it."""
    n = int(torch.randint(5, MAX_LEN - 2, (1,)))
    words = torch.randint(18, VOCAB, (n,))
    first, second = torch.randperm(n)[:2].tolist()
    good = bool(torch.rand(1) < 0.5)
    words[first] = int(torch.randint(2, 10, (1,))) + (0 if good else 8)
    negated = bool(torch.rand(1) < 0.5)
    if negated:
        words[second] = NEGATION
    return words, int(good != negated)


def collate(batch):
    tokens = torch.full((len(batch), MAX_LEN), PAD)
    for row, (words, _) in enumerate(batch):
        tokens[row, : len(words)] = words
    labels = torch.tensor([label for _, label in batch])
    return tokens, tokens != PAD, labels


class ReviewClassifier(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.position = nn.Parameter(torch.randn(MAX_LEN, dim) * 0.1)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.feedforward = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, dim))
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens, mask):
        x = self.embed(tokens) + self.position
        attended, _ = self.attention(x, x, x, key_padding_mask=mask)
        x = self.norm(x + attended)
        x = x + self.feedforward(x)
        keep = mask.unsqueeze(-1).float()
        pooled = (x * keep).sum(1) / keep.sum(1)
        return self.out(pooled)


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for tokens, mask, labels in loader:
            correct += (model(tokens, mask).argmax(-1) == labels).sum().item()
            total += len(labels)
    return correct / total


train_loader = DataLoader([make_review() for _ in range(3000)], batch_size=50, shuffle=True, collate_fn=collate)
test_loader = DataLoader([make_review() for _ in range(600)], batch_size=100, collate_fn=collate)

model = ReviewClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    total_loss = 0.0
    for tokens, mask, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens, mask), labels)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    print(f"epoch {epoch + 1}: train loss {total_loss / len(train_loader):.4f}")

test_accuracy = evaluate(model, test_loader)
print(f"test accuracy: {test_accuracy:.3f}")
