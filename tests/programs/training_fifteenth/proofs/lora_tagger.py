import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

norms = {}
real = torch.nn.utils.clip_grad_norm_


def spied(key):
    def clip(params, max_norm):
        out = real(params, max_norm)
        norms.setdefault(key, []).append(float(out))
        return out
    return clip


res = {}
for key, edits in (("bad", ()), ("good", [("trainable = filter(lambda p: p.requires_grad, model.parameters())",
                                           "trainable = [p for p in model.parameters() if p.requires_grad]")])):
    torch.nn.utils.clip_grad_norm_ = spied(key)
    res[key] = run("lora_tagger", *edits)
    torch.nn.utils.clip_grad_norm_ = real
tune_bad, tune_good = norms["bad"][600:], norms["good"][600:]
print(max(tune_bad), min(tune_good), max(tune_good), res["bad"]["final_acc"], res["good"]["final_acc"])
assert max(tune_bad) == 0.0 and max(tune_good) > 5.0
assert res["good"]["final_acc"] > res["bad"]["final_acc"] + 0.1
