import torch
from torch import nn

torch.manual_seed(14)


class Squeezer(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({
            "down": nn.Sequential(nn.Linear(24, 32), nn.Mish(), nn.Linear(32, 6)),
            "up": nn.Sequential(nn.Linear(6, 32), nn.Mish(), nn.Linear(32, 24)),
        })

    def forward(self, x):
        return self.parts["up"](self.parts["down"](x))


class ProbeCallback:
    def __init__(self, x, label):
        self.x, self.label = x, label

    def on_epoch_end(self, model):
        down = model.parts["down"]
        for p in down.parameters():
            p.requires_grad = False
        readout = nn.Linear(6, 3)
        solver = torch.optim.LBFGS(readout.parameters(), max_iter=20)

        def closure():
            solver.zero_grad()
            value = nn.functional.cross_entropy(readout(down(self.x)), self.label)
            value.backward()
            return value

        solver.step(closure)
        hit = (readout(down(self.x)).argmax(1) == self.label).float().mean()
        for p in down.parameters():
            p.requires_grad = True
        return hit.item()


centres = torch.randn(3, 24)
label = torch.randint(3, (256,))
mix = torch.randn(5, 24)
x = centres[label] * 0.5 + torch.randn(256, 5) @ mix * 0.5 + 0.1 * torch.randn(256, 24)
model = Squeezer()
callback = ProbeCallback(x, label)
opt = torch.optim.Adamax(model.parameters(), lr=4e-3)
for epoch in range(6):
    for part in torch.randperm(256).split(32):
        loss = nn.functional.mse_loss(model(x[part]), x[part])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {epoch} loss {loss.item():.4f} probe {callback.on_epoch_end(model):.3f}")
with torch.no_grad():
    print("final", nn.functional.mse_loss(model(x), x).item())
