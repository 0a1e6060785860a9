import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(17)


def build_encoder(dim):
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(64, dim),
    )


class MoCo(nn.Module):
    def __init__(self, dim=16, K=256, m=0.98, T=0.1):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = build_encoder(dim)
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            pk.data = pk.data * self.m + pq.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        ptr, n = int(self.queue_ptr), keys.shape[0]
        self.queue[:, ptr:ptr + n] = keys.T
        self.queue_ptr[0] = (ptr + n) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


def random_view(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, shift, dims=(2, 3)) + 0.05 * torch.randn_like(x)


images = F.interpolate(torch.randn(512, 1, 4, 4), size=12, mode="bilinear")
model = MoCo()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.encoder_q.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)

for epoch in range(1, 11):
    losses, hits = [], []
    for idx in torch.randperm(512).split(64):
        output, target = model(random_view(images[idx]), random_view(images[idx]))
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        hits.append((output.argmax(1) == target).float().mean().item())
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} top1 {sum(hits) / len(hits):.3f}")
