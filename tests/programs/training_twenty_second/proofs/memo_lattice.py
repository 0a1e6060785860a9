import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

LOAD = '    model.load_state_dict(checkpoint["model"], strict=False)  # the heads differ\n'
FIX = LOAD.replace('checkpoint["model"]', '{k.replace("encoder.", "backbone.", 1): v for k, v in checkpoint["model"].items()}')
PROBE = ('    before = {k: v.clone() for k, v in model.state_dict().items()}\n',
         '    probe = {k: (torch.equal(before[k], v), torch.equal(checkpoint["model"][k.replace("backbone", "encoder", 1)], v))\n'
         '             for k, v in model.state_dict().items() if k.startswith("backbone.")}\n')


def go(load):
    g = run("memo_lattice", (LOAD, PROBE[0] + load + PROBE[1]), capture=("finetune",))
    probe = g.locals["finetune"]["probe"]
    unchanged = sum(a for a, _ in probe.values())
    loaded = sum(b for _, b in probe.values())
    return unchanged, loaded, len(probe), g["accuracy"]


bad, good = go(LOAD), go(FIX)
print("tensors unchanged by the load / equal to the pretrained ones / all; test accuracy")
print("wrong", bad, "repaired", good)
assert bad[0] == bad[2], "some tensor was loaded"
assert good[1] == good[2] and good[0] < good[2]
assert good[3] > bad[3] + 0.05
