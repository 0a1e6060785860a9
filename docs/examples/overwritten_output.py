import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
y = w.exp()
y.add_(1.0)
y.sum().backward()
