"""Polarity of short headlines, trained with perturbed word embeddings (fast gradient method)."""
import torch
import torch.nn.functional as F
from torch import nn

VOCAB, LENGTH, CLASSES = 300, 12, 3


def make_headlines(count, generator):
    """Every class has its own cue words; two or three of them are put among common words."""
    labels = torch.randint(0, CLASSES, (count,), generator=generator)
    words = torch.randint(60, VOCAB, (count, LENGTH), generator=generator)
    for _ in range(3):
        position = torch.randint(0, LENGTH, (count, 1), generator=generator)
        cue = labels.unsqueeze(1) * 20 + torch.randint(0, 20, (count, 1), generator=generator)
        words.scatter_(1, position, cue)
    return words, labels


class HeadlineClassifier(nn.Module):
    def __init__(self, width=32, hidden=32):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, width)
        self.reader = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(2 * hidden, CLASSES)

    def forward(self, words):
        states, _ = self.reader(self.embedding(words))
        return self.output(self.dropout(states.max(dim=1).values))


class FastGradient:
    """Moves the embedding along its gradient for one more pass, and puts it back after that."""

    def __init__(self, model, epsilon, target="embedding"):
        self.model = model
        self.epsilon = epsilon
        self.target = target
        self.backup = {}

    def attack(self):
        for name, parameter in self.model.named_parameters():
            if self.target not in name or parameter.grad is None:
                continue
            self.backup[name] = parameter.data
            norm = parameter.grad.norm()
            if norm > 0 and torch.isfinite(norm):
                parameter.data.add_(parameter.grad, alpha=self.epsilon / norm.item())

    def restore(self):
        for name, parameter in self.model.named_parameters():
            if name in self.backup:
                parameter.data = self.backup[name]
        self.backup = {}


def train_epoch(model, attacker, optimizer, words, labels, batch_size, generator):
    model.train()
    clean_sum = moved_sum = 0.0
    order = torch.randperm(len(labels), generator=generator)
    batches = order.split(batch_size)
    for chosen in batches:
        optimizer.zero_grad()
        clean = F.cross_entropy(model(words[chosen]), labels[chosen])
        clean.backward()
        attacker.attack()
        moved = F.cross_entropy(model(words[chosen]), labels[chosen])
        moved.backward()
        attacker.restore()
        optimizer.step()
        clean_sum += clean.item()
        moved_sum += moved.item()
    return clean_sum / len(batches), moved_sum / len(batches)


@torch.no_grad()
def accuracy(model, words, labels):
    model.eval()
    return (model(words).argmax(dim=1) == labels).float().mean().item()


def main():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(17)
    train_words, train_labels = make_headlines(640, generator)
    test_words, test_labels = make_headlines(512, generator)
    model = HeadlineClassifier()
    attacker = FastGradient(model, epsilon=1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        clean, moved = train_epoch(model, attacker, optimizer, train_words, train_labels, 32, generator)
        score = accuracy(model, test_words, test_labels)
        print(f"epoch {epoch + 1}  loss {clean:.4f}  perturbed {moved:.4f}  test accuracy {score:.3f}")
    size = model.embedding.weight.detach().norm(dim=1).mean().item()
    print(f"mean length of a word vector: {size:.3f}")
    return model, score


if __name__ == "__main__":
    model, score = main()
