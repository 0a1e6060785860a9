import torch
w = torch.ones(1, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)
w.sum().backward()  # role: accumulated_here
opt.step()
before = w.detach().clone()
opt.zero_grad(set_to_none=False)  # role: cleared_here
opt.step()  # role: needed_here
assert not torch.equal(w, before)  # role: observed_here
print("silent", before.item(), "to", w.item(), "with a zero gradient")
