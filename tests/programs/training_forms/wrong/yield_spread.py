import torch
from torch import nn
from torch.func import vmap

torch.manual_seed(21)
MEMBERS, INPUTS, HIDDEN = 5, 6, 12


def replicate(shape):
    first = torch.randn(*shape) / shape[0] ** 0.5
    return nn.Parameter(torch.stack([first] * MEMBERS))


class Committee(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterDict(
            {
                "into": replicate((INPUTS, HIDDEN)),
                "shift": nn.Parameter(torch.zeros(MEMBERS, HIDDEN)),
                "out": replicate((HIDDEN, 1)),
            }
        )

    @staticmethod
    def single(w, x):
        return (torch.tanh(x @ w["into"] + w["shift"]) @ w["out"]).squeeze(-1)

    def forward(self, x):
        return vmap(self.single, in_dims=(0, None))(dict(self.w.items()), x)


def crop_data(n):
    x = torch.randn(n, INPUTS)
    y = x[:, 0] * x[:, 1] + torch.sin(x[:, 2]) + 0.1 * torch.randn(n)
    return x, y


x, y = crop_data(256)
far = 3 * torch.randn(64, INPUTS)
model = Committee()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for it in range(150):
    pick = torch.randint(len(x), (64,))
    loss = (model(x[pick]) - y[pick]).square().mean(1).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 50 == 49:
        print(f"iteration {it + 1}: loss {loss.item() / MEMBERS:.4f}")

with torch.no_grad():
    print(f"spread near {model(x).std(0).mean():.4f} far {model(far).std(0).mean():.4f}")
