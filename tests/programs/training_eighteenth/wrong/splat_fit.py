"""2-D Gaussian splatting (after Kerbl et al. 2023) in small: fit an image with soft blobs, prune and split half-way."""
import torch
from torch import nn

torch.manual_seed(1)
SIZE, START, STEPS, DENSIFY_AT = 32, 24, 400, (100, 180)


def target_image():
    ys, xs = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    img = torch.zeros(3, SIZE, SIZE)
    img[0] += ((xs + 0.4) ** 2 + (ys + 0.3) ** 2 < 0.12).float()
    img[1] += ((xs - 0.35).abs() + (ys - 0.1).abs() < 0.4).float()
    img[2] += ((ys - 0.55).abs() < 0.12).float() * (xs.abs() < 0.8).float()
    img += 0.15 * (torch.sin(9 * xs) * torch.cos(7 * ys)).clamp(min=0)
    return img.clamp(0, 1), torch.stack([xs, ys], dim=-1).reshape(-1, 2)


class Splats(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mean = nn.Parameter(torch.rand(n, 2) * 1.6 - 0.8)
        self.log_scale = nn.Parameter(torch.full((n, 2), -1.6))
        self.color = nn.Parameter(torch.zeros(n, 3))
        self.opacity = nn.Parameter(torch.full((n, 1), -0.5))

    def forward(self, grid):
        d = (grid[:, None, :] - self.mean[None]) * torch.exp(-self.log_scale)[None]
        weight = torch.exp(-0.5 * d.pow(2).sum(-1)) * torch.sigmoid(self.opacity).T
        light = weight @ torch.sigmoid(self.color)
        return light.T.reshape(3, SIZE, SIZE)

    @torch.no_grad()
    def densify(self, grad_norm, n_split):
        """Drop nearly transparent blobs; replace the busiest ones by two smaller children."""
        keep = torch.sigmoid(self.opacity).squeeze(1) > 0.05
        busy = torch.zeros_like(keep)
        busy[grad_norm.masked_fill(~keep, -1.0).topk(n_split).indices] = True
        stay = keep & ~busy
        jitter = torch.exp(self.log_scale[busy]) * torch.randn(2, n_split, 2)
        children = self.mean[busy] + 0.7 * jitter
        parts = {
            "mean": children.reshape(-1, 2),
            "log_scale": (self.log_scale[busy] - 0.47).repeat(2, 1),
            "color": self.color[busy].repeat(2, 1),
            "opacity": self.opacity[busy].repeat(2, 1),
        }
        for name, new in parts.items():
            old = getattr(self, name)
            setattr(self, name, nn.Parameter(torch.cat([old[stay], new])))
        return int((~keep).sum())


def make_optimizer(splats):
    return torch.optim.Adam([
        {"params": [splats.mean], "lr": 0.01},
        {"params": [splats.log_scale], "lr": 0.02},
        {"params": [splats.color, splats.opacity], "lr": 0.05},
    ])


def psnr(a, b):
    return (-10 * torch.log10((a - b).pow(2).mean())).item()


def main():
    image, grid = target_image()
    splats = Splats(START)
    opt = make_optimizer(splats)
    motion = torch.zeros(START)
    history = []
    for step in range(STEPS):
        render = splats(grid)
        loss = (render - image).abs().mean() + (render - image).pow(2).mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        motion += splats.mean.grad.norm(dim=1)
        opt.step()
        if step + 1 in DENSIFY_AT:
            dropped = splats.densify(motion, n_split=12)
            motion = torch.zeros(len(splats.mean))
            print(f"step {step + 1}: dropped {dropped}, now {len(splats.mean)} blobs")
        history.append(loss.item())
        if step % 80 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    with torch.no_grad():
        quality = psnr(splats(grid), image)
    print(f"final loss {history[-1]:.4f}  psnr {quality:.2f} dB")
    return splats, opt, history, quality


if __name__ == "__main__":
    splats, opt, history, quality = main()
