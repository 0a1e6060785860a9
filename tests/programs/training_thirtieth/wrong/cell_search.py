"""Differentiable search over the operations of a small cell: mixing logits on one split, weights on the other."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Zero(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def candidate_operations(width):
    return nn.ModuleList([
        nn.Identity(),
        Zero(),
        nn.Sequential(nn.Linear(width, width), nn.ReLU()),
        nn.Sequential(nn.Linear(width, width), nn.Tanh()),
        nn.Sequential(nn.Linear(width, 4), nn.Linear(4, width)),
    ])


class MixedEdge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ops = candidate_operations(width)

    def forward(self, x, mix):
        return sum(m * op(x) for m, op in zip(mix, self.ops))


class SearchCell(nn.Module):
    def __init__(self, n_in, width, classes, nodes=2):
        super().__init__()
        self.stem = nn.Linear(n_in, width)
        self.edges = nn.ModuleList([MixedEdge(width) for _ in range(nodes * (nodes + 1) // 2)])
        self.classifier = nn.Linear(width, classes)
        self.nodes = nodes
        self.logits = nn.Parameter(1e-3 * torch.randn(len(self.edges), len(self.edges[0].ops)))

    def weights(self):
        return [p for name, p in self.named_parameters() if name != "logits"]

    def forward(self, x):
        mixes = self.logits.softmax(dim=1)
        states, edge = [F.relu(self.stem(x))], 0
        for _ in range(self.nodes):
            total = 0
            for state in states:
                total = total + self.edges[edge](state, mixes[edge])
                edge += 1
            states.append(total)
        return self.classifier(states[-1])

    def genotype(self):
        names = ["identity", "zero", "relu", "tanh", "bottleneck"]
        return [names[i] for i in self.logits.argmax(dim=1).tolist()]


class Searcher:
    def __init__(self, model, lr=0.1, arch_lr=1e-2, max_norm=5.0):
        self.model, self.max_norm = model, max_norm
        self.weight_opt = torch.optim.SGD(model.weights(), lr=lr, momentum=0.9, weight_decay=3e-4)
        self.arch_opt = torch.optim.Adam([model.logits], lr=arch_lr, betas=(0.5, 0.999), weight_decay=1e-3)

    def search_step(self, train, valid):
        arch_loss = F.cross_entropy(self.model(valid[0]), valid[1])
        self.arch_opt.zero_grad()
        arch_loss.backward()
        self.arch_opt.step()

        loss = F.cross_entropy(self.model(train[0]), train[1])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.weights(), self.max_norm)
        self.weight_opt.step()
        self.weight_opt.zero_grad()
        return loss.item(), arch_loss.item()


def make_data(n, teacher, generator, flip=0.15):
    x = torch.randn(n, 16, generator=generator)
    y = teacher(x).argmax(1)
    noisy = torch.rand(n, generator=generator) < flip
    return x, torch.where(noisy, torch.randint(0, 3, (n,), generator=generator), y)


def batch(data, n=32):
    index = torch.randint(0, len(data[0]), (n,))
    return data[0][index], data[1][index]


@torch.no_grad()
def score(model, data):
    logits = model(data[0])
    return F.cross_entropy(logits, data[1]).item(), (logits.argmax(1) == data[1]).float().mean().item()


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(14)
    teacher = nn.Sequential(nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 3)).requires_grad_(False)
    train, valid, test = (make_data(n, teacher, generator) for n in (160, 160, 1000))
    model = SearchCell(16, 20, 3)
    searcher = Searcher(model)
    for step in range(1, 121):
        loss, arch_loss = searcher.search_step(batch(train), batch(valid))
        if step % 40 == 0:
            print(f"step {step:4d}  train batch {loss:.3f}  valid batch {arch_loss:.3f}")
    results = {name: score(model, data) for name, data in (("train", train), ("valid", valid), ("test", test))}
    for name, (ce, acc) in results.items():
        print(f"{name:5s}  loss {ce:.3f}  accuracy {acc:.3f}")
    print("cell:", ", ".join(model.genotype()))
    return model, results


if __name__ == "__main__":
    main()
