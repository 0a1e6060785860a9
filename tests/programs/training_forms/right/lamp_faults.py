import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

torch.manual_seed(59)


class Lamp(nn.Module):
    def __init__(self):
        super().__init__()
        self.feed = nn.Linear(10, 32)
        self.tell = nn.Linear(32, 4)

    def forward(self, x):
        return self.tell(torch.relu(self.feed(x)))


class Session:
    def __init__(self, lr=5e-3):
        self.net = Lamp().to(torch.bfloat16)
        self.sizes = [p.numel() for p in self.net.parameters()]
        self.flat = nn.Parameter(self.gather())
        self.opt = torch.optim.Adam([self.flat], lr=lr)

    def gather(self):
        return parameters_to_vector(self.net.parameters()).detach().float()

    def resume(self, state):
        self.net.load_state_dict(state)
        self.flat.data.copy_(self.gather())

    @torch.no_grad()
    def scatter(self):
        for p, piece in zip(self.net.parameters(), self.flat.split(self.sizes)):
            p.copy_(piece.view_as(p))

    def update(self, x, fault):
        loss = nn.functional.cross_entropy(self.net(x.bfloat16()).float(), fault)
        self.net.zero_grad()
        loss.backward()
        self.flat.grad = parameters_to_vector(p.grad for p in self.net.parameters()).float()
        self.opt.step()
        self.scatter()
        return loss.item()


turn = torch.randn(10, 4)


def signals(n=32, shift=0.0):
    x = torch.randn(n, 10)
    return x, ((x + shift) @ turn).argmax(1)


first = Session()
for step in range(200):
    value = first.update(*signals())
print(f"first stage loss {value:.4f}")
saved = {k: v.clone() for k, v in first.net.state_dict().items()}

second = Session(lr=1e-3)
second.resume(saved)
for step in range(40):
    value = second.update(*signals(shift=0.2))
    if step % 10 == 9:
        print(f"second stage step {step + 1}  loss {value:.4f}")
