import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, rel, run

wrong = run("ema_denoiser", capture=["main"]).locals["main"]
for n, p in wrong["model"].named_parameters():
    assert wrong["ema"].shadow[n].data_ptr() == p.data_ptr()
assert torch.equal(flat(wrong["averaged"]), flat(wrong["model"]))
fixed = run("ema_denoiser", ("{name: p.data for", "{name: p.data.clone() for"), capture=["main"]).locals["main"]
assert rel(flat(fixed["averaged"]), flat(fixed["model"])) > 1e-2
print("proved: ema_denoiser")
