import torch
from torch import nn


class Reviews(nn.Module):
    def __init__(self, vocab=150, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.conv = nn.Conv1d(dim, 32, 3, padding=1)
        self.out = nn.Linear(32, 2)

    def forward(self, ids):
        x = torch.relu(self.conv(self.embed(ids).transpose(1, 2)))
        return self.out(x.amax(-1))


class Adversary:
    def __init__(self, model, target="embed", radius=0.5):
        self.weights = {n: p for n, p in model.named_parameters() if target in n}
        self.radius = radius
        self.saved = {}

    def attack(self):
        for name, p in self.weights.items():
            self.saved[name] = p.data.clone()
            size = p.grad.norm()
            if size > 0:
                p.data.add_(p.grad, alpha=self.radius / size.item())

    def restore(self):
        for name, p in self.weights.items():
            p.data.copy_(self.saved[name])
        self.saved.clear()


def corpus(n, gen):
    label = torch.randint(2, (n,), generator=gen)
    ids = torch.randint(1, 150, (n, 20), generator=gen)
    hint = torch.rand(n, 20, generator=gen) < 0.12
    mood = 1 + label[:, None] * 12 + torch.randint(12, (n, 20), generator=gen)
    return torch.where(hint, mood, ids), label


def train_step(model, adversary, opt, ids, label):
    criterion = nn.CrossEntropyLoss()
    opt.zero_grad()
    clean = criterion(model(ids), label)
    clean.backward()
    adversary.attack()
    hard = criterion(model(ids), label)
    hard.backward()
    adversary.restore()
    opt.step()
    return clean.item(), hard.item()


def main():
    torch.manual_seed(71)
    gen = torch.Generator().manual_seed(18)
    model = Reviews()
    adversary = Adversary(model)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for it in range(160):
        clean, hard = train_step(model, adversary, opt, *corpus(32, gen))
        if it % 32 == 31:
            print(f"iter {it + 1:3d}  clean {clean:.4f}  perturbed {hard:.4f}")
    ids, label = corpus(500, gen)
    with torch.no_grad():
        print("accuracy", (model(ids).argmax(1) == label).float().mean().item())


if __name__ == "__main__":
    main()
