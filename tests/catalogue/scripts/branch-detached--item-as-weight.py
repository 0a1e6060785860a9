import torch
w = torch.tensor(3.0, requires_grad=True)
scale = (w * 1).item()  # role: graph_cut_here
(w * scale).backward()  # role: needed_here
reference = torch.tensor(6.0)  # d(w^2)/dw
assert not torch.equal(w.grad, reference)  # role: observed_here
print("silent", w.grad.item(), "instead of", reference.item())
