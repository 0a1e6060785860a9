import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

torch.manual_seed(7)


def build():
    return nn.Sequential(
        nn.Conv1d(2, 8, 5, padding=2),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Conv1d(8, 8, 5, padding=2),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


def record(n):
    kind = torch.randint(0, 3, (n,))
    time = torch.linspace(0, 6.28, 32)
    phase = torch.rand(n, 1) * 6.28
    wave = torch.sin(time * (kind[:, None] * 2 + 2) + phase)
    both = torch.stack([4 + 3 * wave, 2 - 5 * wave.square()], dim=1)
    return both + torch.randn_like(both), kind


class Soup:
    def __init__(self):
        self.vectors = []

    def add(self, net):
        with torch.no_grad():
            self.vectors.append(parameters_to_vector(net.parameters()).clone())

    def serve(self, batches):
        mixed = build()
        vector_to_parameters(torch.stack(self.vectors).mean(0), mixed.parameters())
        return mixed.eval()


def accuracy(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


x, y = record(384)
held_x, held_y = record(256)
batches = list(zip(x.split(48), y.split(48)))
net = build()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
soup = Soup()
for epoch in range(12):
    net.train()
    for bx, by in batches:
        loss = nn.functional.cross_entropy(net(bx), by)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 7:
        soup.add(net)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}  loss {loss.item():.4f}")

served = soup.serve(batches)
print("last weights ", accuracy(net.eval(), held_x, held_y))
print("mean of five ", accuracy(served, held_x, held_y))
