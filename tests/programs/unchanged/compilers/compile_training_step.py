import logging
import torch
torch._logging.set_logs(dynamo=logging.ERROR)
model = torch.nn.Linear(2, 1)
torch.nn.init.ones_(model.weight)
torch.nn.init.zeros_(model.bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
@torch.compile(backend="eager")
def train_step(x):
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.detach()
for _ in range(3):
    optimizer.zero_grad()
    print(train_step(torch.ones(4, 2)))
print(model.weight.grad, torch.autograd.grad(model(torch.ones(2)), [model.bias]))
