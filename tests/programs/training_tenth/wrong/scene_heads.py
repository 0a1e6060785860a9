"""Shared convolutional trunk for depth and segmentation on small synthetic scenes, with projected task gradients."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


def make_scenes(count, size=12):
    image = torch.randn(count, 1, size, size) * 0.3
    mask = torch.zeros(count, size, size, dtype=torch.long)
    depth = torch.zeros(count, 1, size, size)
    for i in range(count):
        y, x = torch.randint(0, size - 5, (2,)).tolist()
        h, w = torch.randint(3, 6, (2,)).tolist()
        level = torch.rand(()).item() + 0.5
        image[i, 0, y:y + h, x:x + w] += level
        mask[i, y:y + h, x:x + w] = 1
        depth[i, 0, y:y + h, x:x + w] = 1.5 - level
    return image, depth, mask


class Trunk(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.norm = nn.GroupNorm(3, width)
        self.body = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        h = F.relu(self.norm(self.stem(x)))
        return F.relu(self.body(h)) + h


class SceneNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.trunk = Trunk(width)
        self.depth_head = nn.Conv2d(width, 1, 1)
        self.seg_head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.depth_head(h), self.seg_head(h)


def task_losses(net, image, depth, mask):
    d, s = net(image)
    return [F.mse_loss(d, depth), F.cross_entropy(s, mask)]


def project(grads):
    """Remove from each task's trunk gradient the part that conflicts with the other tasks, then add them up."""
    flat = [torch.cat([g.flatten() for g in task]) for task in grads]
    merged = torch.zeros_like(flat[0])
    for i, own in enumerate(flat):
        own = own.clone()
        for j, other in enumerate(flat):
            if i != j:
                dot = own @ other
                if dot < 0:
                    own -= dot / other.dot(other).clamp(min=1e-12) * other
        merged += own
    return merged


def train(net, data, epochs=6, batch=32):
    opt = torch.optim.Adam(net.parameters(), lr=4e-3)
    shared = list(net.trunk.parameters())
    image, depth, mask = data
    for epoch in range(epochs):
        order = torch.randperm(len(image))
        total = torch.zeros(2)
        for idx in order.split(batch):
            losses = task_losses(net, image[idx], depth[idx], mask[idx])
            opt.zero_grad(set_to_none=False)
            grads = []
            for loss in losses:
                for p in shared:
                    if p.grad is not None:
                        p.grad.zero_()
                loss.backward(retain_graph=True)
                grads.append([p.grad for p in shared])
            merged = project(grads)
            offset = 0
            for p in shared:
                p.grad = merged[offset:offset + p.numel()].view_as(p).clone()
                offset += p.numel()
            opt.step()
            total += torch.stack([loss.detach() for loss in losses])
    return total / (len(image) / batch)


net = SceneNet()
train_losses = train(net, make_scenes(384))
with torch.no_grad():
    image, depth, mask = make_scenes(128)
    d, s = net(image)
    depth_error = F.mse_loss(d, depth).item()
    accuracy = (s.argmax(1) == mask).float().mean().item()
print(f"train losses {train_losses.tolist()}  depth error {depth_error:.4f}  pixel accuracy {accuracy:.3f}")
