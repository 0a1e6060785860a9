import torch
hyper = torch.nn.Linear(1, 2)  # role: leaf_made_here
layer = torch.nn.Linear(2, 1, bias=False)
generated = hyper(torch.ones(1, 1))
layer.weight = torch.nn.Parameter(generated)  # role: graph_cut_here
layer(torch.ones(1, 2)).sum().backward()  # role: needed_here
assert hyper.weight.grad is None  # role: observed_here
print("silent", hyper.weight.grad)
