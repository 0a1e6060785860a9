import copy, torch
net = torch.nn.Linear(1, 1, bias=False)
net(torch.ones(1, 1)).sum().backward()  # role: accumulated_here
plain = torch.ones(1, requires_grad=True)
plain.sum().backward()
twin = copy.deepcopy(net)  # role: replaced_here
assert twin.weight.grad is None and copy.deepcopy(plain).grad is not None  # role: observed_here
print("silent", net.weight.grad.tolist(), "but the copy has", twin.weight.grad)
