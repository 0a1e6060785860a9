"""Next-character model on synthetic text, trained with Lookahead: the fast weights take k steps with an inner
optimizer, then the slow weights move a part of the way towards them and the fast ones restart from there."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

WORDS = ["loss", "grad", "step", "model", "tensor", "batch", "train", "layer"]
ALPHABET = sorted(set("".join(WORDS) + " "))
INDEX = {c: i for i, c in enumerate(ALPHABET)}
CONTEXT = 4


def make_text(words):
    picks = torch.randint(len(WORDS), (words,)).tolist()
    return " ".join(WORDS[i] for i in picks)


def windows(text):
    codes = torch.tensor([INDEX[c] for c in text])
    blocks = codes.unfold(0, CONTEXT + 1, 1)
    return blocks[:, :CONTEXT], blocks[:, CONTEXT]


class CharModel(nn.Module):
    def __init__(self, dim=12, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), dim)
        self.net = nn.Sequential(nn.Linear(CONTEXT * dim, hidden), nn.Tanh(), nn.Linear(hidden, len(ALPHABET)))

    def forward(self, x):
        return self.net(self.embed(x).flatten(1))


class Lookahead:
    def __init__(self, optimizer, k=5, alpha=0.3):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.params = [p for group in optimizer.param_groups for p in group["params"]]
        self.slow = [p.detach().clone() for p in self.params]
        self.count = 0
        self.moved = 0.0

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()
        self.count += 1
        if self.count % self.k == 0:
            self.synchronise()

    def synchronise(self):
        self.moved = 0.0
        for p, slow in zip(self.params, self.slow):
            delta = p.data - slow
            self.moved += delta.pow(2).sum().item()
            slow.add_(delta, alpha=self.alpha)
            p.data = slow


def evaluate(model, x, y):
    with torch.no_grad():
        return F.cross_entropy(model(x), y).item()


def main():
    train_x, train_y = windows(make_text(400))
    test_x, test_y = windows(make_text(400))
    model = CharModel()
    optimizer = Lookahead(torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.8))
    curve = []
    for step in range(1, 801):
        pick = torch.randint(len(train_x), (16,))
        loss = F.cross_entropy(model(train_x[pick]), train_y[pick])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step > 400 and step % optimizer.k == 0:
            curve.append(evaluate(model, test_x, test_y))
        if step % 200 == 0:
            print(f"step {step}  loss {loss.item():.3f}  test {evaluate(model, test_x, test_y):.3f}")
    average = sum(curve) / len(curve)
    print(f"test loss over the second half: mean {average:.3f}, worst {max(curve):.3f} (uniform {math.log(len(ALPHABET)):.3f})")


if __name__ == "__main__":
    main()
