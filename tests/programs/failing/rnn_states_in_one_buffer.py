"""expect: saved-tensor-modified-inplace

All states of a recurrent net are kept in one buffer, which is written while the net unrolls.
"""

import torch
from torch import nn


class BufferedRNN(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.drive = nn.Linear(inputs, hidden)
        self.recur = nn.Linear(hidden, hidden, bias=False)
        self.readout = nn.Linear(hidden, 1)

    def unroll(self, sequence):
        steps, batch, _ = sequence.shape
        states = torch.zeros(steps + 1, batch, self.hidden)
        for t in range(steps):
            current = self.drive(sequence[t])
            carried = self.recur(states[t])  # role: saved_here
            states[t + 1] = torch.tanh(current + carried)  # role: modified_here
        return states

    def forward(self, sequence):
        return self.readout(self.unroll(sequence)[-1]).squeeze(-1)


def train(model, sequence, target, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = criterion(model(sequence), target)
        print(epoch, round(loss.item(), 4))
        loss.backward()  # role: needed_here
        optimizer.step()


torch.manual_seed(2)
train(BufferedRNN(3, 5), torch.randn(4, 2, 3), torch.randn(2))
