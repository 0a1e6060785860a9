"""Checks the sentence about a critic's loss that also reaches the encoder or generator, and opposes its loss."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEAD = """\
from torch.nn.functional import binary_cross_entropy_with_logits as bce, mse_loss
enc, dec = nn.Sequential(nn.Linear(4, 2), nn.Tanh()), nn.Linear(2, 4)
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
oa = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=0.01)
oc = torch.optim.Adam(critic.parameters(), lr=0.01)
x, one, zero = torch.randn(8, 4), torch.ones(8), torch.zeros(8)
"""
CODES = (
    HEAD
    + """\
for _ in range(4):
    z = enc(x)
    logit = critic(z).squeeze(-1)
    loss = mse_loss(dec(z), x) + 0.1 * bce(logit, one)
    oa.zero_grad()
    loss.backward(retain_graph=True)
    prior = critic(torch.randn(8, 2)).squeeze(-1)
    judged = 0.5 * (bce(prior, one) + bce(logit, zero))
    oc.zero_grad()
    judged.backward()  #!
    oa.step()
    oc.step()
"""
)
GAN = (
    HEAD
    + """\
for _ in range(4):
    fake = enc(x)
    oa.zero_grad()
    (-critic(fake).mean()).backward(retain_graph=True)
    oc.zero_grad()
    (critic(fake).mean() - critic(torch.randn(8, 2)).mean()).backward()  #!
    oc.step()
    oa.step()
"""
)
WRONG = {
    "an adversarial autoencoder": CODES,
    "both cleared by their modules": CODES.replace("oc.zero_grad()", "critic.zero_grad()"),
    "two passes of the critic": CODES.replace("bce(logit, zero)", "bce(critic(z).squeeze(-1), zero)"),
    "means of the results": GAN,
    "least squares": CODES.replace("bce(logit, one)", "mse_loss(logit, one)").replace(
        "bce(logit, zero)", "mse_loss(logit, zero)"),
    "the real samples in a pass of their own": CODES.replace("    oc.zero_grad()\n", "").replace(
        "    judged = 0.5 * (bce(prior, one) + bce(logit, zero))\n",
        "    oc.zero_grad()\n    bce(prior, one).backward()\n    judged = bce(logit, zero)\n"),
    "the critic first, frozen for the encoder": HEAD + """\
for _ in range(4):
    oa.zero_grad(); oc.zero_grad()
    z = enc(x)
    judged = bce(critic(z).squeeze(-1), zero) + bce(critic(torch.randn(8, 2)).squeeze(-1), one)
    judged.backward(retain_graph=True)  #!
    critic.requires_grad_(False)
    (mse_loss(dec(z), x) + 0.1 * bce(critic(z).squeeze(-1), one)).backward()
    critic.requires_grad_(True)
    oa.step(); oc.step()
""",
}  # fmt: skip
RIGHT = {
    "detached": CODES.replace("bce(logit, zero)", "bce(critic(z.detach()).squeeze(-1), zero)"),
    "a step before the second pass": GAN.replace("    oc.step()\n    oa.step()\n", "    oc.step()\n").replace(
        "    oc.zero_grad()", "    oa.step()\n    oc.zero_grad()").replace("(critic(fake)", "(critic(enc(x))"),
    "only the critic's parameters": CODES.replace(
        "judged.backward()", "judged.backward(inputs=[*critic.parameters()])"),
    "cleared and filled again": CODES.replace("    oa.step()\n", (
        "    oa.zero_grad()\n    (mse_loss(dec(enc(x)), x) + 0.1 * bce(critic(enc(x))[:, 0], one)).backward()\n"
        "    oa.step()\n")).replace("    oc.step()\n", "").replace("    oa.zero_grad()\n    (mse", (
        "    oc.step()\n    oa.zero_grad()\n    (mse")),
    "the critic trains the encoder, too": CODES.replace(
        "oc = torch.optim.Adam(critic.parameters()", "oc = torch.optim.Adam([*enc.parameters(), *critic.parameters()]")
    .replace("0.1 * bce(logit, one)", "0.1 * (1 - logit.mean()) ** 2"),
    "two tasks": CODES.replace("0.1 * bce(logit, one)", "0.1 * bce(logit, (x[:, 0] > 0).float())").replace(
        "bce(logit, zero)", "bce(logit, (x[:, 1] > 0).float())"),
    "both losses to one side": CODES.replace("bce(logit, zero)", "bce(logit, one)"),
    "one optimizer": CODES.replace("oa = ", "oa = oc = ").replace("*dec.parameters()]", (
        "*dec.parameters(), *critic.parameters()]")).replace(
        "oc = torch.optim.Adam(critic.parameters(), lr=0.01)\n", "").replace("    oc.step()\n", "").replace(
        "    oc.zero_grad()\n", ""),
    "a reversed gradient": HEAD + """\
class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        return z.view_as(z)
    @staticmethod
    def backward(ctx, g):
        return -0.1 * g
for _ in range(4):
    z = enc(x)
    oa.zero_grad()
    (mse_loss(dec(z), x) + 0.1 * bce(critic(z).squeeze(-1), one)).backward(retain_graph=True)
    oc.zero_grad()
    (bce(critic(Turn.apply(z)).squeeze(-1), zero) + bce(critic(torch.randn(8, 2)).squeeze(-1), one)).backward()
    oa.step()
    oc.step()
""",
    "a reversed gradient of one task loss": HEAD + """\
head = nn.Linear(2, 1)
oc.add_param_group({"params": head.parameters()})
for _ in range(4):
    z = enc(x)
    oa.zero_grad(); oc.zero_grad()
    bce(head(z)[:, 0], one).backward(retain_graph=True)
    turned = z * 1
    turned.register_hook(lambda g: -g)
    bce(critic(turned)[:, 0], zero).backward()
    oa.step(); oc.step()
""",
}  # fmt: skip
WORDS = "pull a result of them in opposite directions"


@pytest.mark.parametrize("name", WRONG)
def test_a_loss_that_leaks_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.text.startswith("`Adam.step()` uses sums of gradients of `enc[0].weight` and `enc[0].bias`: ")
    assert "is for `critic[0].weight`, `critic[0].bias`, `critic[2].weight` and 1 more" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


RIGHT["a frozen head for other samples"] = """\
encoder = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))
head = nn.Linear(8, 1)
opt_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_head = torch.optim.SGD(head.parameters(), lr=1e-2)
for step in range(30):
    inliers, outliers = torch.randn(32, 6), 3 * torch.randn(32, 6) + 2
    opt_encoder.zero_grad()
    opt_head.zero_grad()
    head.requires_grad_(False)
    loss_out = nn.functional.softplus(head(encoder(outliers))).mean()
    loss_out.backward()
    head.requires_grad_(True)
    loss_in = nn.functional.softplus(-head(encoder(inliers))).mean()
    loss_in.backward()
    opt_encoder.step()
    opt_head.step()
print(float(loss_in), float(loss_out))
"""
RIGHT["gradients that are kept and restored"] = """\
enc, dec = nn.Linear(8, 2), nn.Linear(2, 8)
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
opt_ae = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
x = torch.randn(64, 8)
for step in range(30):
    opt_ae.zero_grad(); opt_critic.zero_grad()
    z = enc(x)
    fake = critic(z)
    loss_a = nn.functional.binary_cross_entropy_with_logits(fake, torch.ones_like(fake))
    loss_g = nn.functional.mse_loss(dec(z), x) + 0.1 * loss_a
    loss_g.backward(retain_graph=True)
    kept = [p.grad.clone() for p in enc.parameters()]
    opt_critic.zero_grad()
    real = critic(torch.randn(64, 2))
    loss_d = nn.functional.binary_cross_entropy_with_logits(real, torch.ones_like(real))
    loss_d = loss_d + nn.functional.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
    loss_d.backward()
    for p, g in zip(enc.parameters(), kept):
        p.grad.copy_(g)
    opt_ae.step(); opt_critic.step()
print(float(loss_g), float(loss_d))
"""


@pytest.mark.parametrize("name", RIGHT)
def test_losses_that_do_not_leak_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
