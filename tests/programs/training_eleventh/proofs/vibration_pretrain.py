import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

OLD = 'classifier.load_state_dict(torch.load(checkpoint)["model"], strict=False)'
NEW = ('classifier.load_state_dict({k.replace("encoder.", "backbone.", 1): v for k, v in '
       'torch.load(checkpoint)["model"].items()}, strict=False)')
PROBE = "\nloaded = [torch.equal(a, b) for a, b in zip(classifier.backbone.state_dict().values(), pretrain.encoder.state_dict().values()) if a.ndim == 3]"
ok, gain = [], []
for seed in (8, 10, 11):
    s = ("manual_seed(8)", f"manual_seed({seed})")
    bad, good = run("vibration_pretrain", s, (OLD, OLD + PROBE)), run("vibration_pretrain", s, (OLD, NEW + PROBE))
    none = run("vibration_pretrain", s, (OLD, "pass"))
    print(bad.output, good.output)
    print("conv weights loaded", bad["loaded"], good["loaded"], "accuracy", bad["test_acc"], good["test_acc"], "no loading at all", none["test_acc"])
    ok.append(not any(bad["loaded"]) and all(good["loaded"]) and bad["test_acc"] == none["test_acc"])
    gain.append(good["test_acc"] - bad["test_acc"])
print("gain", gain)
sys.exit(0 if all(ok) and sum(gain) / 3 > 0.05 else 1)
