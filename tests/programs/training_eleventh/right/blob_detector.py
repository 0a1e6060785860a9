"""One-box detector: a frozen pretrained stem, a box branch and an objectness branch that predicts the box's IoU."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, CELLS, N_TRAIN, N_TEST, BATCH, EPOCHS = 32, 4, 384, 128, 32, 8


def make_scenes(n, g):
    """Bright rectangles on noise; boxes are given as x1, y1, x2, y2 in pixels."""
    wh = 6 + 10 * torch.rand(n, 2, generator=g)
    xy = torch.rand(n, 2, generator=g) * (SIZE - wh)
    boxes = torch.cat([xy, xy + wh], dim=1)
    r = torch.arange(SIZE) + 0.5
    in_x = (r > boxes[:, 0:1]) & (r < boxes[:, 2:3])
    in_y = (r > boxes[:, 1:2]) & (r < boxes[:, 3:4])
    images = 0.5 * torch.randn(n, SIZE, SIZE, generator=g) + 1.2 * (in_y[:, :, None] & in_x[:, None, :])
    return images.unsqueeze(1), boxes


def iou(a, b):
    lt, rb = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda t: (t[..., 2:] - t[..., :2]).clamp(min=0).prod(-1)
    return inter / (area(a) + area(b) - inter + 1e-6)


class Detector(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        )
        self.neck = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
                                  nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU())
        self.box_head = nn.Conv2d(2 * width, 4, 1)
        self.iou_head = nn.Sequential(nn.Conv2d(2 * width, width, 1), nn.ReLU(), nn.Conv2d(width, 1, 1))
        cy, cx = torch.meshgrid(*[(torch.arange(CELLS) + 0.5) * SIZE / CELLS] * 2, indexing="ij")
        self.register_buffer("centres", torch.stack([cx, cy], dim=-1).view(-1, 2))
        self.stem_frozen = False

    def freeze_stem(self):
        self.stem_frozen = True
        self.stem.requires_grad_(False)
        self.train(self.training)

    def train(self, mode=True):
        super().train(mode)
        if self.stem_frozen:  # the statistics belong to the pretrained weights
            self.stem.eval()
        return self

    def forward(self, x):
        h = self.neck(self.stem(x))
        ltrb = F.softplus(self.box_head(h)).flatten(2).transpose(1, 2) * 8
        boxes = torch.cat([self.centres - ltrb[..., :2], self.centres + ltrb[..., 2:]], dim=-1)
        return boxes, self.iou_head(h).flatten(1)


def detection_loss(model, images, target):
    boxes, score = model(images)
    target = target[:, None, :]
    with torch.no_grad():  # assignment: the three cells with the nearest centres
        centre = (target[..., :2] + target[..., 2:]) / 2
        near = (model.centres - centre).norm(dim=-1).topk(3, dim=1, largest=False).indices
        positive = torch.zeros_like(score, dtype=torch.bool).scatter_(1, near, True)
    overlap = iou(boxes, target)
    box_loss = (1 - overlap)[positive].mean() + 0.05 * (boxes - target).abs().mean(-1)[positive].mean()
    quality = torch.where(positive, overlap, torch.zeros_like(overlap)).detach()
    return box_loss, F.binary_cross_entropy_with_logits(score, quality)


@torch.no_grad()
def mean_iou(model, images, target):
    model.eval()
    boxes, score = model(images)
    best = boxes[torch.arange(len(images)), score.argmax(1)]
    return iou(best, target).mean().item()


def pretrain_stem(model, images, epochs=3):
    decoder = nn.Sequential(nn.Upsample(scale_factor=4), nn.Conv2d(16, 1, 3, padding=1))
    opt = torch.optim.Adam([*model.stem.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(epochs):
        for x in images.split(BATCH):
            loss = F.mse_loss(decoder(model.stem(x)), F.avg_pool2d(x, 5, 1, 2))
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(f"pretraining loss {loss.item():.4f}")


torch.manual_seed(17)
gen = torch.Generator().manual_seed(17)
train_x, train_box = make_scenes(N_TRAIN, gen)
test_x, test_box = make_scenes(N_TEST, gen)
detector = Detector()
pretrain_stem(detector, train_x)
detector.freeze_stem()
optimizer = torch.optim.Adam([p for p in detector.parameters() if p.requires_grad], lr=3e-3)
for epoch in range(EPOCHS):
    detector.train()
    for idx in torch.randperm(N_TRAIN).split(BATCH):
        box_loss, quality_loss = detection_loss(detector, train_x[idx], train_box[idx])
        optimizer.zero_grad()
        (box_loss + quality_loss).backward()
        optimizer.step()
    if epoch % 2 == 1:
        print(f"epoch {epoch} box {box_loss.item():.3f} quality {quality_loss.item():.3f} IoU {mean_iou(detector, test_x, test_box):.3f}")
