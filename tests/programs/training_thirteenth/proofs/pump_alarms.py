import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

watch = (
    '    model.encoder.load_state_dict(checkpoint["encoder_ema"], strict=False)\n',
    '    before = {k: v.clone() for k, v in model.encoder.state_dict().items()}\n'
    '    answer = model.encoder.load_state_dict(checkpoint["encoder_ema"], strict=False)\n'
    '    moved = [k for k, v in model.encoder.state_dict().items() if not v.equal(before[k])]\n',
)
fix = (
    'checkpoint["encoder_ema"], strict',
    '{k.removeprefix("module."): v for k, v in checkpoint["encoder_ema"].items()}, strict',
)
a = run("pump_alarms", watch, capture=("finetune",))
b = run("pump_alarms", watch, fix, capture=("finetune",))
print(a.output, b.output)
la, lb = a.locals["finetune"], b.locals["finetune"]
print("tensors that the load changed:", la["moved"], "repaired:", lb["moved"])
print("missing keys:", la["answer"].missing_keys, "repaired:", lb["answer"].missing_keys)
print("accuracy", a["accuracy"], "repaired", b["accuracy"])
ok = la["moved"] == [] and len(lb["moved"]) >= 4 and not lb["answer"].missing_keys
sys.exit(0 if ok and b["accuracy"] > a["accuracy"] + 0.04 else 1)
