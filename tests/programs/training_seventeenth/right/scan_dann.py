"""Domain-adversarial training: labelled photos as source, unlabelled recoloured sketches as target."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
N_CLASSES = 4
DIM = 24
STEPS = 800

centres = 1.0 * torch.randn(N_CLASSES, DIM)
style = torch.linalg.qr(torch.randn(DIM, DIM))[0][:, :2]
offset = 6.0 * style[:, 0] - 6.0 * style[:, 1]


def photos(n):
    y = torch.randint(0, N_CLASSES, (n,))
    return centres[y] + torch.randn(n, DIM), y


def sketches(n):
    x, y = photos(n)
    return 0.9 * x + offset, y


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


encoder = nn.Sequential(nn.Linear(DIM, 48), nn.ReLU(), nn.Linear(48, 16), nn.Tanh())
classifier = nn.Linear(16, N_CLASSES)
critic = nn.Sequential(nn.Linear(16, 24), nn.LeakyReLU(0.1), nn.Linear(24, 1))
params = [*encoder.parameters(), *classifier.parameters(), *critic.parameters()]
opt = torch.optim.Adam(params, lr=2e-3, betas=(0.5, 0.9))


def schedule(step):
    """Strength of the adversary grows from 0 to 1, as in the DANN paper."""
    return 2.0 / (1.0 + math.exp(-10.0 * step / STEPS)) - 1.0


@torch.no_grad()
def report(x, y):
    return (classifier(encoder(x)).argmax(1) == y).float().mean().item()


xs, ys = photos(1200)
xt, _ = sketches(1200)
test_s, test_t = photos(800), sketches(800)

for step in range(STEPS):
    i = torch.randint(0, len(xs), (64,))
    j = torch.randint(0, len(xt), (64,))
    both = encoder(torch.cat([xs[i], xt[j]]))
    loss_y = F.cross_entropy(classifier(both[:64]), ys[i])
    is_source = torch.cat([torch.ones(64), torch.zeros(64)])
    guess = critic(Reverse.apply(both, schedule(step))).squeeze(1)
    loss_d = F.binary_cross_entropy_with_logits(guess, is_source)
    opt.zero_grad()
    (loss_y + loss_d).backward()
    opt.step()
    if step % 160 == 0 or step == STEPS - 1:
        d_acc = ((guess > 0).float() == is_source).float().mean().item()
        print(f"step {step:3d}  label loss {loss_y.item():.3f}  domain loss {loss_d.item():.3f}  "
              f"critic acc {d_acc:.2f}  source {report(*test_s):.3f}  target {report(*test_t):.3f}")

# How well can a fresh probe still tell the domains apart? The encoder itself stays as it is here.
with torch.no_grad():
    feats = torch.cat([encoder(test_s[0]), encoder(test_t[0])])
labels = torch.cat([torch.ones(800), torch.zeros(800)])
probe = nn.Linear(16, 1)
probe_opt = torch.optim.Adam(probe.parameters(), lr=0.02)
for _ in range(150):
    probe_loss = F.binary_cross_entropy_with_logits(probe(feats).squeeze(1), labels)
    probe_opt.zero_grad()
    probe_loss.backward()
    probe_opt.step()
print(f"probe loss on frozen features {probe_loss.item():.3f} (chance {math.log(2):.3f})")
print(f"final target accuracy {report(*test_t):.3f}")
