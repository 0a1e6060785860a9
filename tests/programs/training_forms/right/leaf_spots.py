import torch
from torch import nn

torch.manual_seed(14)


class Taps:
    def __init__(self):
        self.seen = {}

    def watch(self, name):
        def on_forward(_module, _inputs, out):
            self.seen[name] = out.detach()
            return self.seen[name] if name == "stem" else out
        return on_forward


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU())
        self.adapter = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 4)

    def forward(self, image):
        return self.head(self.adapter(self.stem(image)).amax(dim=(2, 3)))


def leaves(n=32):
    kind = torch.randint(4, (n,))
    image = 0.3 * torch.randn(n, 3, 16, 16)
    for i, k in enumerate(kind.tolist()):
        r, c = torch.randint(0, 10, (2,)).tolist()
        image[i, k % 3, r:r + 2 + 4 * (k // 2), c:c + 4] += 1.0
    return image, kind


def trainable(net):
    for part in (net.adapter, net.head):
        yield from part.parameters()


net = LeafNet()
for p in net.stem.parameters():
    p.requires_grad_(False)
taps = Taps()
for name in ("stem", "adapter"):
    net.get_submodule(name).register_forward_hook(taps.watch(name))

opt = torch.optim.Adam(trainable(net), lr=1e-2)
for step in range(90):
    image, kind = leaves()
    loss = nn.functional.cross_entropy(net(image), kind)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 29:
        spread = {k: round(v.std().item(), 3) for k, v in taps.seen.items()}
        print(f"step {step + 1}  loss {loss.item():.4f}  {spread}")
