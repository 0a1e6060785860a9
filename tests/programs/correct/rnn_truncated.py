"""Truncated backpropagation: the state is detached between batches."""

import torch
from torch import nn

torch.manual_seed(3)
rnn = nn.LSTM(2, 5, batch_first=True)
readout = nn.Linear(5, 1)
parameters = [*rnn.parameters(), *readout.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
state = None
for x in torch.randn(4, 3, 6, 2):
    if state is not None:
        state = tuple(part.detach() for part in state)
    output, state = rnn(x, state)
    loss = (readout(output).squeeze(-1) - x.sum(-1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
print("done")
