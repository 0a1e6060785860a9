import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("model.load_state_dict(torch.load(path), strict=False)",
       "model.load_state_dict({k.replace('encoder.', 'backbone.'): v for k, v in torch.load(path).items()}, strict=False)")
probe = ("    model.load_state_dict(torch.load(path), strict=False)\n",
         "    fresh = {k: v.clone() for k, v in model.state_dict().items()}\n"
         "    report = model.load_state_dict(torch.load(path), strict=False)\n"
         "    globals().update(fresh=fresh, report=report)\n")
a, b = run("contrastive_probe", probe), run("contrastive_probe", fix)
fresh, report = a["fresh"], a["report"]
model, pretrained = a["model"], a["pretrained"]
assert set(report.missing_keys) == {k for k in fresh if "num_batches" not in k}, "no tensor of the model was loaded"
assert all("num_batches" in k or k in report.missing_keys for k in fresh)
assert all(torch.equal(v, fresh["backbone." + k]) for k, v in model.backbone.state_dict().items())
assert rel(flat(model.backbone), flat(pretrained.encoder)) > 0.5
assert torch.equal(flat(b["model"].backbone), flat(b["pretrained"].encoder))
print("accuracy as written", a["score"], "repaired", b["score"])
assert b["score"] > a["score"] + 0.2
