import torch
leaf = torch.ones(3, requires_grad=True)  # role: leaf_made_here
w = leaf.double()  # role: nonleaf_made_here
(w ** 2).sum().backward()  # role: needed_here
assert not w.is_leaf and leaf.grad is not None  # role: observed_here
print("silent", w.is_leaf, "so w.grad stays None")
