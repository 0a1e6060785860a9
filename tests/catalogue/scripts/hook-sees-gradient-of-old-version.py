import torch
x, seen = torch.ones(2, requires_grad=True), []
h = x * 2
h.register_hook(lambda g: seen.append(g.clone()))  # role: hook_registered_here
h.retain_grad()
h.mul_(5)  # role: modified_here
h.sum().backward()  # role: needed_here
assert seen[0].tolist() == [5.0, 5.0] and h.grad.tolist() == [1.0, 1.0]  # role: observed_here
print("silent", seen[0].tolist(), "while h.grad is", h.grad.tolist())
