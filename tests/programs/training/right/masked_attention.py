"""Sequence classification with masked attention pooling."""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCAB = 0, 40


class Pool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, 16)
        self.score = nn.Linear(16, 1, bias=False)

    def forward(self, h, mask):
        energy = self.score(torch.tanh(self.proj(h))).squeeze(-1)
        energy = energy.masked_fill(~mask, float("-inf"))
        weights = energy.softmax(dim=1)
        return torch.einsum("bt,btd->bd", weights, h)


class Classifier(nn.Module):
    def __init__(self, dim=20, classes=4):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.pool = Pool(dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, tokens):
        return self.out(self.pool(self.embed(tokens), tokens != PAD))


def corpus(n, length=14):
    tokens = torch.randint(5, VOCAB, (n, length))
    sizes = torch.randint(4, length + 1, (n,))
    labels = torch.randint(4, (n,))
    spot = (torch.rand(n) * sizes).long()
    tokens[torch.arange(n), spot] = labels + 1
    tokens[torch.arange(length) >= sizes.unsqueeze(1)] = PAD
    return tokens, labels


def main():
    torch.manual_seed(10)
    train_x, train_y = corpus(640)
    test_x, test_y = corpus(200)
    model = Classifier()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(8):
        for idx in torch.randperm(len(train_x)).split(64):
            loss = F.cross_entropy(model(train_x[idx]), train_y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            acc = (model(test_x).argmax(1) == test_y).float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
