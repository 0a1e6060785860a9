import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The same run with the gradients brought back to their own scale before they are clipped.
repair = ("        nn.utils.clip_grad_norm_", "        scaler.unscale_(optimizer)\n        nn.utils.clip_grad_norm_")
wrong, right = run("spectra_sorting"), run("spectra_sorting", repair)
print(wrong["losses"], right["losses"])
assert wrong["losses"][0] - wrong["losses"][-1] < 0.01
assert right["losses"][-1] < 0.5 * right["losses"][0]
assert right["final_accuracy"] > wrong["final_accuracy"] + 0.3

# What the optimizer gets: a gradient of norm 1 / scale instead of one of norm at most 1.
def norms(*edits):
    seen = []
    r = run("spectra_sorting", *edits, as_main=False)
    torch.manual_seed(5)
    peaks, widths = 0.1 + 0.8 * torch.rand(6, 3), 0.02 + 0.04 * torch.rand(6, 3)
    model = r["SpectrumNet"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda *a: seen.append(flat_grad(model).norm().item()))
    schedule = r["warmup_cosine"](optimizer, 8, 96)
    scaler = torch.amp.GradScaler("cpu")
    r["train_epoch"](model, r["make_spectra"](256, peaks, widths), optimizer, schedule, scaler, 64, 1.0)
    return seen, scaler.get_scale()

seen, scale = norms()
print(seen, scale)
assert all(n <= 1.01 / scale for n in seen) and scale == 65536.0
seen, scale = norms(repair)
print(seen)
assert all(n > 0.05 for n in seen)
