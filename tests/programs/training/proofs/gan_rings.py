import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, run

wrong = run("gan_rings", capture=["train"]).locals["train"]
assert all(p.grad is None for p in wrong["generator"].parameters())
assert len(wrong["g_opt"].state) == 0 and len(wrong["d_opt"].state) > 0
start = run("gan_rings", ("STEPS = 150", "STEPS = 0"), capture=["train"]).locals["train"]
assert torch.equal(flat(wrong["generator"]), flat(start["generator"]))
fixed = run(
    "gan_rings",
    ("fake = generator(noise).detach()", "fake = generator(noise)"),
    ("bce(discriminator(fake), zeros)", "bce(discriminator(fake.detach()), zeros)"),
    capture=["train"],
).locals["train"]
assert len(fixed["g_opt"].state) > 0 and not torch.equal(flat(fixed["generator"]), flat(start["generator"]))
print("proved: gan_rings")
