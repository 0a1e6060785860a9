import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("master_store")
good = run("master_store", (
    '        self.loss_scale = state["loss_scale"]\n',
    '        self.loss_scale = state["loss_scale"]\n        for m, p in zip(self.master, self.model_params):\n            m.data.copy_(p.data)\n'))
print(bad.output, good.output)
stop = bad["first"].history[-1]
print(stop, bad["second"].history, good["second"].history)
assert bad["second"].history[0] > 1.5 * stop          # the resumed run falls back
assert good["second"].history[0] < 1.3 * stop
assert bad["second"].history[-1] > 1.3 * good["second"].history[-1]
# right after loading, the masters are not the loaded weights
ckpt = bad["checkpoint"]; ckpt.seek(0)
t = bad["Trainer"](seed=1); t.load(ckpt)
gap = max((m - p.float()).abs().max().item() for m, p in zip(t.optim.master, t.optim.model_params))
print("gap", gap)
assert gap > 0.05
