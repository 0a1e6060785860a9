"""Adding problem with a vanilla RNN and gradient clipping."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

LENGTH, HIDDEN, MAX_NORM = 20, 32, 0.25


class AddingRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(2, HIDDEN, nonlinearity="relu", batch_first=True)
        self.out = nn.Linear(HIDDEN, 1)
        nn.init.eye_(self.rnn.weight_hh_l0)

    def forward(self, x):
        _, h = self.rnn(x)
        return self.out(h[-1]).squeeze(-1)


def adding_batch(n, gen):
    values = torch.rand(n, LENGTH, generator=gen)
    marks = torch.zeros(n, LENGTH)
    first = torch.randint(0, LENGTH // 2, (n,), generator=gen)
    second = torch.randint(LENGTH // 2, LENGTH, (n,), generator=gen)
    rows = torch.arange(n)
    marks[rows, first] = 1.0
    marks[rows, second] = 1.0
    return torch.stack([values, marks], dim=-1), (values * marks).sum(dim=1)


def train(steps=120):
    torch.manual_seed(127)
    gen = torch.Generator().manual_seed(128)
    model = AddingRNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    norms = []
    for step in range(steps):
        x, y = adding_batch(32, gen)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        norms.append(clip_grad_norm_(model.parameters(), MAX_NORM).item())
        if step % 40 == 39:
            print(f"step {step}: mse {loss.item():.4f} mean grad norm {sum(norms) / len(norms):.3f}")
    return model


if __name__ == "__main__":
    train()
