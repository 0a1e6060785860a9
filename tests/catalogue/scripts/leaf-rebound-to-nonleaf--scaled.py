import torch
leaf = torch.ones(3, requires_grad=True)  # role: leaf_made_here
w = leaf * 0.01  # role: nonleaf_made_here
(w ** 2).sum().backward()  # role: needed_here
assert w.requires_grad and not w.is_leaf  # role: observed_here
print("silent", w.is_leaf, "so w.grad stays None")
