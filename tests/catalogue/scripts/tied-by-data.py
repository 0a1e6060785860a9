import torch
a, b = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
torch.nn.init.ones_(a.weight)
b.weight.data = a.weight.data  # role: shared_here
opt = torch.optim.SGD([a.weight, b.weight], lr=0.1, momentum=0.9)
x = torch.ones(1, 1)
(a(x) + 2 * b(x)).sum().backward()  # role: needed_here
assert a.weight.grad.item() == 1.0 and b.weight.grad.item() == 2.0  # role: observed_here
print("silent")
