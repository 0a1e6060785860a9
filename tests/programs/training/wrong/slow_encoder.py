"""Text classifier whose pretrained embedding layer learns at half the gradient."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class BagClassifier(nn.Module):
    def __init__(self, vocab, dim, classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mix = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, classes)

    def forward(self, tokens):
        return self.out(torch.tanh(self.mix(self.embed(tokens))))

    def slow_down(self, factor):
        for p in [*self.embed.parameters(), *self.mix.parameters()]:
            p.register_hook(lambda g: g * factor)


def documents(n, vocab=60, length=15, topics=4):
    y = torch.randint(topics, (n,))
    topical = y.unsqueeze(1) * 10 + torch.randint(10, (n, length))
    common = 40 + torch.randint(vocab - 40, (n, length))
    return torch.where(torch.rand(n, length) < 0.3, topical, common), y


def train_one_epoch(model, optimizer, tokens, labels):
    model.train()
    model.slow_down(0.5)
    losses = []
    for idx in torch.randperm(len(tokens)).split(64):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[idx]), labels[idx])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(137)
    tokens, labels = documents(640)
    test_tokens, test_labels = documents(200)
    model = BagClassifier(60, 24, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    for epoch in range(10):
        loss = train_one_epoch(model, optimizer, tokens, labels)
        model.eval()
        with torch.no_grad():
            acc = (model(test_tokens).argmax(1) == test_labels).float().mean().item()
        print(f"epoch {epoch}: loss {loss:.4f} test acc {acc:.3f}")
    return model, tokens, labels


if __name__ == "__main__":
    main()
