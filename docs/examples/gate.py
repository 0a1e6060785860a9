import torch

score = torch.tensor([1.2, -0.7], requires_grad=True)
gate = score.sigmoid()
shown = gate.detach()
shown.zero_()
gate.sum().backward()
