import torch
from torch import nn
from torch.func import functional_call


class Denoiser(nn.Module):
    def __init__(self, length, width=48):
        super().__init__()
        self.layers = nn.ModuleDict({
            "inp": nn.Linear(length + 1, width),
            "mid": nn.Linear(width, width),
            "out": nn.Linear(width, length),
        })

    def forward(self, x, level):
        h = torch.tanh(self.layers["inp"](torch.cat([x, level], dim=1)))
        h = torch.tanh(self.layers["mid"](h))
        return self.layers["out"](h)


class Shadow:
    def __init__(self, model, rate):
        self.rate = rate
        self.store = {k: v.detach().to(torch.bfloat16, copy=True) for k, v in model.named_parameters()}

    @torch.no_grad()
    def absorb(self, model):
        for k, v in model.named_parameters():
            s = self.store[k]
            s.lerp_(v.to(s.dtype), self.rate)

    def weights(self):
        return {k: v.float() for k, v in self.store.items()}


def waves(n, length):
    grid = torch.linspace(0, 1, length)
    freq = torch.randint(1, 4, (n, 1))
    phase = torch.rand(n, 1)
    return torch.sin(2 * torch.pi * (freq * grid + phase))


def corrupt(clean):
    level = torch.rand(len(clean), 1)
    return clean + level * torch.randn_like(clean), level


def main():
    torch.manual_seed(11)
    length = 24
    model = Denoiser(length)
    shadow = Shadow(model, rate=0.002)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    test = waves(256, length)
    test_noisy, test_level = corrupt(test)
    for step in range(900):
        clean = waves(64, length)
        noisy, level = corrupt(clean)
        loss = (model(noisy, level) - clean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shadow.absorb(model)
        if step % 180 == 179:
            with torch.no_grad():
                smooth = functional_call(model, shadow.weights(), (test_noisy, test_level))
                raw = model(test_noisy, test_level)
            print(f"step {step + 1}: raw {(raw - test).square().mean():.4f} "
                  f"averaged {(smooth - test).square().mean():.4f}")


if __name__ == "__main__":
    main()
