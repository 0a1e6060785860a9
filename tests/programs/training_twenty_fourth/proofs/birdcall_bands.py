import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("birdcall_bands")
good = run("birdcall_bands", ("        if self._ready is None:\n            self._ready", "        if True:\n            self._ready"))


def measure(r):
    model, wave, label = r["model"], r["test_wave"], r["test_label"]
    model.eval()
    with torch.no_grad():
        used, current = model.bank.filters(), model.bank.design()
        acc = model(wave).argmax(1).eq(label).float().mean().item()
    return rel(used, current), acc


stale, acc_bad = measure(bad)
fresh, acc_good = measure(good)
# training itself is the same, so only the filters used at test time differ
same = max(rel(a.detach(), b.detach()) for a, b in zip(bad["model"].parameters(), good["model"].parameters()))
print(f"filters off by {stale:.3f} / {fresh:.3f}; accuracy {acc_bad:.3f} / {acc_good:.3f}; weights differ {same:.1e}")
assert same < 1e-6
assert stale > 0.05 and fresh < 1e-6
assert acc_good > acc_bad + 0.02
