import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

real = torch.nn.utils.clip_grad_norm_
norms = []


def recording(params, max_norm, *args, **kw):
    norm = real(params, max_norm, *args, **kw)
    norms.append(float(norm))
    return norm


torch.nn.utils.clip_grad_norm_ = recording
wrong = run("rain_gauge_rnn")
wrong_norms, norms[:] = list(norms), []
fixed = run("rain_gauge_rnn", ("trainable = filter(lambda p: p.requires_grad, net.parameters())",
                               "trainable = [p for p in net.parameters() if p.requires_grad]"))
print("largest norm seen by the clipping:", max(wrong_norms), "repaired", max(norms))
print("unexplained variance", wrong["unexplained"], "repaired", fixed["unexplained"])
ok = max(wrong_norms) == 0.0 and min(norms) > 0 and max(norms) > 5 and not wrong["unexplained"] < 1.3 * fixed["unexplained"]
sys.exit(0 if ok else 1)
