"""Low-rank adapters on a frozen sequence model for a new speaker; folded into the weights while evaluating."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

STEPS, DIM, CLASSES = 12, 10, 4
tones = torch.randn(CLASSES, STEPS, DIM)
voice = torch.linalg.qr(torch.eye(DIM) + 0.4 * torch.randn(DIM, DIM))[0]


def recordings(n, new_speaker):
    labels = torch.randint(CLASSES, (n,))
    x = tones[labels] + 1.2 * torch.randn(n, STEPS, DIM)
    return (x @ voice if new_speaker else x), labels


class Adapter(nn.Module):
    """Wraps a linear layer; in eval mode the update sits in the wrapped weight, in train mode beside it."""

    def __init__(self, linear, rank=3):
        super().__init__()
        self.linear = linear
        self.down = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features ** 0.5)
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.original = None

    @torch.no_grad()
    def train(self, mode=True):
        if not mode and self.original is None:
            self.original = self.linear.weight.clone()
            self.linear.weight += self.up @ self.down
        elif mode and self.original is not None:
            self.linear.weight.copy_(self.original)
            self.original = None
        return super().train(mode)

    def forward(self, x):
        out = self.linear(x)
        return out if self.original is not None else out + x @ self.down.T @ self.up.T


class Listener(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = nn.Linear(DIM, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.leave = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.leave(self.gru(torch.tanh(self.enter(x)))[0][:, -1])


def fit(model, x, y, lr, epochs):
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    for epoch in range(epochs):
        model.train()
        for index in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"  epoch {epoch}  loss {loss.item():.3f}  accuracy {accuracy(model, *held_out):.3f}")


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(-1) == y).float().mean().item()


model = Listener()
held_out = recordings(500, False)
print("pretraining")
fit(model, *recordings(600, False), 5e-3, 10)
model.requires_grad_(False)
model.enter, model.leave = Adapter(model.enter), Adapter(model.leave)
held_out = recordings(500, True)
print(f"new speaker before adaptation: {accuracy(model, *held_out):.3f}")
fit(model, *recordings(300, True), 5e-3, 15)
print(f"new speaker after adaptation: {accuracy(model, *held_out):.3f}")
