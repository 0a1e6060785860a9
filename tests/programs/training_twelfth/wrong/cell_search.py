"""DARTS (Liu et al., 2019), first-order: architecture search over a small cell for noisy 1-D sensor traces."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

CHANNELS, CLASSES, LENGTH = 10, 4, 32
OPS = ("skip", "conv3", "conv5", "avgpool", "maxpool")
NODES = 2
EPOCHS = 8


def traces(n):
    """Class = frequency of a weak oscillation hidden in noise and a random drift."""
    label = torch.randint(0, CLASSES, (n,))
    t = torch.arange(LENGTH).float()
    freq = torch.tensor([0.35, 0.6, 0.85, 1.1])[label][:, None]
    x = torch.sin(freq * t + 6.28 * torch.rand(n, 1))
    x = x + 0.04 * torch.randn(n, 1) * t + 0.8 * torch.randn(n, LENGTH)
    return x.unsqueeze(1), label


def conv_block(k):
    return nn.Sequential(nn.ReLU(), nn.Conv1d(CHANNELS, CHANNELS, k, padding=k // 2, bias=False),
                         nn.BatchNorm1d(CHANNELS, affine=False))


def make_op(name):
    if name == "skip":
        return nn.Identity()
    if name == "avgpool":
        return nn.AvgPool1d(3, stride=1, padding=1, count_include_pad=False)
    if name == "maxpool":
        return nn.MaxPool1d(3, stride=1, padding=1)
    return conv_block(int(name[-1]))


class MixedOp(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = nn.ModuleList(make_op(name) for name in OPS)

    def forward(self, x, weights):
        return sum(w * op(x) for w, op in zip(weights, self.ops))


class SearchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, CHANNELS, 3, padding=1), nn.BatchNorm1d(CHANNELS))
        n_edges = sum(i + 1 for i in range(NODES))
        self.edges = nn.ModuleList(MixedOp() for _ in range(n_edges))
        self.alphas = nn.Parameter(1e-3 * torch.randn(n_edges, len(OPS)))
        self.classifier = nn.Linear(NODES * CHANNELS, CLASSES)

    def arch_parameters(self):
        return [self.alphas]

    def forward(self, x):
        weights = F.softmax(self.alphas, dim=-1)
        states, edge = [self.stem(x)], 0
        for _ in range(NODES):
            node = 0
            for state in states:
                node = node + self.edges[edge](state, weights[edge])
                edge += 1
            states.append(node)
        return self.classifier(torch.cat(states[1:], dim=1).mean(dim=-1))

    def genotype(self):
        return [OPS[i] for i in self.alphas.argmax(dim=-1).tolist()]


x_all, y_all = traces(768)
x_train, y_train = x_all[:384], y_all[:384]
x_search, y_search = x_all[384:], y_all[384:]
x_test, y_test = traces(1024)

net = SearchNet()
w_optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=3e-4)
a_optimizer = torch.optim.Adam(net.arch_parameters(), lr=3e-3, betas=(0.5, 0.999), weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(w_optimizer, EPOCHS, eta_min=1e-3)

for epoch in range(EPOCHS):
    net.train()
    train_batches = torch.randperm(len(x_train)).split(32)
    search_batches = torch.randperm(len(x_search)).split(32)
    for tr, se in zip(train_batches, search_batches):
        a_optimizer.zero_grad()
        F.cross_entropy(net(x_search[se]), y_search[se]).backward()
        a_optimizer.step()

        w_optimizer.zero_grad()
        loss = F.cross_entropy(net(x_train[tr]), y_train[tr])
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        w_optimizer.step()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch + 1}  train loss {loss.item():.3f}  test acc {accuracy:.3f}")

print("genotype", net.genotype())
print("edge weights", [round(v, 3) for v in F.softmax(net.alphas, dim=-1)[0].tolist()])
