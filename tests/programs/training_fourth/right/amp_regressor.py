"""Mixed precision on the CPU for a regression of pump power: fp16 autocast, scaled loss, clipping by true norm."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def pumps(n):
    x = torch.rand(n, 6)
    power = 2 * x[:, 0] * x[:, 1] + torch.sin(3 * x[:, 2]) - x[:, 3] ** 2
    return x, (power + 0.05 * torch.randn(n))[:, None]


model = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12, growth_interval=200)
train_x, train_y = pumps(800)
test_x, test_y = pumps(400)
clipped = steps = 0

for epoch in range(15):
    for idx in torch.randperm(len(train_x)).split(40):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = model(train_x[idx])
        loss = F.mse_loss(prediction.float(), train_y[idx])
        scaler.scale(loss).backward()
        # from here on .grad is in true units; scaler.step knows that it was unscaled and does not do it again
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        clipped += int(norm > 0.5)
        steps += 1
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d} loss {loss.item():.4f} grad norm {norm.item():.3f} scale {scaler.get_scale():.0f}")

with torch.no_grad():
    error = F.mse_loss(model(test_x), test_y).item()
print(f"clipped {clipped} of {steps} steps; test mse {error:.4f}, variance {test_y.var().item():.4f}")
