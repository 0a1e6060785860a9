import torch
w = torch.ones(3, requires_grad=True)
total = 0.0
for step in range(3):
    loss = (w * step).exp().sum()  # role: graph_built_here
    total = total + loss  # role: shared_here
node, chain = total.grad_fn, 0
while node.next_functions and node.next_functions[0][0] is not None:
    node, chain = node.next_functions[0][0], chain + 1
assert chain >= 3  # role: observed_here
print("silent", chain)
