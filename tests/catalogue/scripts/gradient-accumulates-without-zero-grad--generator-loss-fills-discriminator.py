import torch
gen, disc = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
opt = torch.optim.SGD(gen.parameters(), lr=0.1)
opt.zero_grad()
disc(gen(torch.ones(1, 1))).sum().backward()  # role: accumulated_here
opt.step()
assert disc.weight.grad is not None  # role: observed_here
print("silent", disc.weight.grad.tolist(), "instead of None")
