import random, torch
torch.manual_seed(1)
random.seed(1)
before = torch.initial_seed()
x = torch.randn(3, requires_grad=True)
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
for _ in range(2):
    net(x).sum().backward()
print(torch.rand(2), random.random(), torch.initial_seed() == before, x.grad)
print(hash(tuple(torch.get_rng_state().tolist())))
