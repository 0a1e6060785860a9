import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import in_optimizer, run

wrong = run("finetune_features", capture=["main"]).locals["main"]
model, opt = wrong["model"], wrong["optimizer"]
for p in model.encoder.parameters():
    assert in_optimizer(p, opt) and p.requires_grad and p not in opt.state
fixed = run("finetune_features", ("    @torch.inference_mode()\n", ""), capture=["main"]).locals["main"]
assert all(p in fixed["optimizer"].state for p in fixed["model"].encoder.parameters())
print("proved: finetune_features")
