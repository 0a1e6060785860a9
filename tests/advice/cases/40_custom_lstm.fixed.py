"""LSTM layer written from its equations."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Cell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.wx = nn.Linear(n_in, 4 * n_hidden)
        self.wh = nn.Linear(n_hidden, 4 * n_hidden, bias=False)

    def forward(self, x, state):
        h, c = state
        gates = self.wx(x) + self.wh(h)
        i, f, g, o = gates.chunk(4, dim=1)
        i = i.sigmoid()
        f = f.sigmoid()
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class Layer(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.cell = Cell(n_in, n_hidden)
        self.readout = nn.Linear(n_hidden, n_out)
        self.n_hidden = n_hidden

    def forward(self, seq):
        state = (seq.new_zeros(seq.size(1), self.n_hidden), seq.new_zeros(seq.size(1), self.n_hidden))
        for x in seq:
            state = self.cell(x, state)
        return self.readout(state[0])


if __name__ == "__main__":
    torch.manual_seed(39)
    layer = Layer(4, 8, 2)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(2):
        loss = F.mse_loss(layer(torch.randn(6, 3, 4)), torch.randn(3, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
