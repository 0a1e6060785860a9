import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run


@torch.no_grad()
def report(result):
    model, base, adapter = result["model"], result["base"], result["adapter"]
    valid = result["corpus"](result["domain"], 256)
    model.train()
    drift = max((p.detach() - base[n]).abs().max().item() for n, p in model.named_parameters() if n in base)
    own = result["lm_loss"](model, valid).exp().item()
    fresh = result["CharModel"]()
    fresh.load_state_dict({**base, **adapter})
    return drift, own, result["lm_loss"](fresh, valid).exp().item()


drift, own, loaded = report(run("lora_char_model"))
drift2, own2, loaded2 = report(run("lora_char_model", ("elif not mode:", "elif not mode and not self.merged:")))
print(drift, own, loaded, "|", drift2, own2, loaded2)
assert drift > 0.05 and drift2 < 1e-4, "frozen base weights moved only in the wrong program"
assert loaded > 1.3 * own and abs(loaded2 - own2) < 0.01, "the adapter fits a base that nobody has"
