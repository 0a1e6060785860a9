import torch
w = torch.ones(3, requires_grad=True)
h = w + 0  # role: graph_built_here
view = h.detach()
view.clamp_(max=0.5)  # role: modified_here
h.sum().backward()  # role: needed_here
assert h.tolist() == [0.5] * 3 and w.grad.tolist() == [1.0] * 3  # role: observed_here
print("silent", w.grad.tolist(), "instead of", [0.0] * 3)
