import torch
from torch import nn
from torch.autograd import Function

torch.manual_seed(47)


class Mirror(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx, upstream):
        return upstream.mul(ctx.strength).neg(), None


class SpeechNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(18, 40), nn.LeakyReLU(), nn.Linear(40, 16), nn.LeakyReLU())
        self.heads = nn.ModuleDict({"phone": nn.Linear(16, 5), "speaker": nn.Linear(16, 4)})

    def forward(self, x):
        code = self.trunk(x)
        return {"phone": self.heads["phone"](code), "speaker": self.heads["speaker"](Mirror.apply(code, 0.5))}


WEIGHTS = {"phone": 1.0, "speaker": -0.4}
sound, accent = torch.randn(5, 18), torch.randn(4, 18)


def frames(n):
    truth = {"phone": torch.randint(5, (n,)), "speaker": torch.randint(4, (n,))}
    return sound[truth["phone"]] + accent[truth["speaker"]] + torch.randn(n, 18), truth


def total(out, truth):
    parts = {name: nn.functional.cross_entropy(out[name], truth[name]) for name in out}
    return sum(WEIGHTS[name] * parts[name] for name in parts), parts


net = SpeechNet()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for it in range(120):
    x, truth = frames(64)
    loss, parts = total(net(x), truth)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    opt.step()
    if it % 40 == 39:
        print(it + 1, {name: round(value.item(), 4) for name, value in parts.items()})
