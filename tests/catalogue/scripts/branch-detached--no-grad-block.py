import torch
w = torch.tensor(3.0, requires_grad=True)
with torch.no_grad():  # role: grad_mode_off_here
    gate = torch.sigmoid(w)  # role: graph_cut_here
(w * gate).backward()  # role: needed_here
v = torch.tensor(3.0, requires_grad=True)
reference, = torch.autograd.grad(v * torch.sigmoid(v), v)
assert not torch.allclose(w.grad, reference)  # role: observed_here
print("silent", w.grad.item(), "instead of", reference.item())
