import torch
x = torch.tensor([1.0001], requires_grad=True)
pack, unpack = (lambda t: t.half()), (lambda t: t.float())
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):  # role: mode_entered_here
    y = x * x  # role: saved_here
y.backward()  # role: needed_here
assert x.grad.item() == 2.0  # role: observed_here
print("silent", x.grad.item(), "instead of", 2 * x.item())
