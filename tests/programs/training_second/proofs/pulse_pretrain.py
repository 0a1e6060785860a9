import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

LOAD = 'model.load_state_dict(checkpoint["model"], strict=False)'
SAVE = "before = {k: v.clone() for k, v in model.state_dict().items()}\n    report = "
AFTER = "\n    after = {k: v.clone() for k, v in model.state_dict().items()}"
a = run("pulse_pretrain", (LOAD, SAVE + LOAD + AFTER), capture=["finetune"]).locals["finetune"]
fixed = LOAD.replace('checkpoint["model"]', '{k.replace("encoder.", "trunk."): v for k, v in checkpoint["model"].items()}')
b = run("pulse_pretrain", (LOAD, SAVE + fixed + AFTER), capture=["finetune"]).locals["finetune"]
assert set(a["report"].missing_keys) == set(a["before"])
assert all(torch.equal(a["before"][k], a["after"][k]) for k in a["before"])
assert all(torch.equal(b["before"][k], b["after"][k]) != k.startswith("trunk") for k in b["before"])
print("proved: pulse_pretrain")
