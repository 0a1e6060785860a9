import torch
with torch.no_grad():  # role: grad_mode_off_here
    x = torch.ones(3, requires_grad=True)
    y = x * 2  # role: graph_cut_here
assert x.requires_grad and not y.requires_grad  # role: observed_here
print("silent", x.requires_grad, "but y.requires_grad is", y.requires_grad)
