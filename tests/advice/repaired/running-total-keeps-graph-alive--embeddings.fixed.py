# a memory of embeddings that was meant to be detached
import torch
from collections import deque
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
memory = deque(maxlen=16)
for step in range(12):
    x = torch.randn(8, 6)
    z = torch.nn.functional.normalize(net(x), dim=1)  # role: graph_built_here
    loss = -(z[:4] * z[4:]).sum(1).mean()
    if memory:
        loss = loss + 0.1 * (z @ torch.cat(list(memory)).detach().T).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory.append(z.detach())  # role: shared_here
print("done")
