"""A gate that is kept open by a write that autograd does not see."""

import torch

torch.manual_seed(0)
score = torch.nn.Linear(4, 1)
x = torch.randn(8, 4)
gate = torch.sigmoid(score(x))
gate.data.clamp_(min=0.5)
loss = (gate * x).sum()
loss.backward()
