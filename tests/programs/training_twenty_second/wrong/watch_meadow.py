"""Watch-time regression for a video feed: frozen content vectors, trainable user side, clipped SGD."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR


def make_log(n_users, n_videos, n_views, gen):
    content = torch.randn(n_videos, 16, generator=gen) / 4
    taste = torch.randn(n_users, 16, generator=gen)
    user = torch.randint(0, n_users, (n_views,), generator=gen)
    video = torch.randint(0, n_videos, (n_views,), generator=gen)
    hour = torch.randint(0, 24, (n_views,), generator=gen)
    interest = (taste[user] * content[video]).sum(-1)
    minutes = 2.0 + 1.5 * interest + 0.5 * torch.sin(hour * math.pi / 12)
    minutes = minutes + 0.3 * torch.randn(n_views, generator=gen)
    # screens left on over night: rare, but they happen
    asleep = torch.rand(n_views, generator=gen) < 0.02
    minutes = torch.where(asleep, minutes + 50 + 30 * torch.rand(n_views, generator=gen), minutes)
    return content, user, video, hour, minutes, asleep


class WatchTime(nn.Module):
    def __init__(self, content, n_users, dim=32):
        super().__init__()
        self.video = nn.Embedding.from_pretrained(content, freeze=True)
        self.video_proj = nn.Linear(content.shape[1], dim)
        self.user = nn.Embedding(n_users, dim)
        self.hour = nn.Embedding(24, 8)
        self.mlp = nn.Sequential(nn.Linear(2 * dim + 8, 64), nn.ReLU(), nn.Linear(64, 1))
        nn.init.normal_(self.user.weight, std=0.1)

    def forward(self, user, video, hour):
        u, v = self.user(user), self.video_proj(self.video(video))
        features = torch.cat([u * v, v, self.hour(hour)], dim=-1)
        return self.mlp(features).squeeze(-1) + (u * v).sum(-1)


def warmup_then_cosine(step, warmup, total):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup)))


@torch.no_grad()
def median_error(model, user, video, hour, minutes):
    model.eval()
    error = (model(user, video, hour) - minutes).abs()
    model.train()
    return error.median().item()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=80)
    parser.add_argument("--videos", type=int, default=200)
    parser.add_argument("--views", type=int, default=10500)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--max-norm", type=float, default=1.0)
    args = parser.parse_args(argv)

    torch.manual_seed(1)
    gen = torch.Generator().manual_seed(29)
    content, *log, asleep = make_log(args.users, args.videos, args.views, gen)
    n_train = args.views * 6 // 7
    train = [column[:n_train] for column in log]
    awake = ~asleep[n_train:]
    valid = [column[n_train:][awake] for column in log]

    model = WatchTime(content, args.users)
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    opt = torch.optim.SGD(trainable, lr=args.lr, momentum=0.9)
    steps = args.epochs * math.ceil(n_train / args.batch_size)
    schedule = LambdaLR(opt, lambda step: warmup_then_cosine(step, steps // 20, steps))

    for epoch in range(args.epochs):
        total = 0.0
        for rows in torch.randperm(n_train).split(args.batch_size):
            user, video, hour, minutes = (column[rows] for column in train)
            loss = F.mse_loss(model(user, video, hour), minutes)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trainable, args.max_norm)
            opt.step()
            schedule.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch}: train mse {total / n_train:7.2f}  valid median error {median_error(model, *valid):.3f} min")
    return model, opt, valid


if __name__ == "__main__":
    model, opt, valid = main([])
