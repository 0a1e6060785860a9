import torch
x = torch.tensor([-1.0], requires_grad=True)
with torch.autograd.detect_anomaly(check_nan=True):
    y = torch.sqrt(x) * 0
    y.sum().backward()
