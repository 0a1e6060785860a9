import torch
enc, dec = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
z = enc(torch.ones(1, 2)).detach()  # role: graph_cut_here
dec(z).sum().backward()  # role: needed_here
assert enc.weight.grad is None and dec.weight.grad is not None  # role: observed_here
print("silent", enc.weight.grad)
