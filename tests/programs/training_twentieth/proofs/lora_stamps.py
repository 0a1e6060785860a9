import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel

fix = ("        super().train(mode)\n        update",
       "        before = self.training\n        super().train(mode)\n        if before == mode:\n            return self\n        update")


def look(*edits):
    r = run("lora_stamps", *edits, capture=("main",))
    m = r.locals["main"]
    model, (image, label) = m["model"], m["test"]
    losses = [r["evaluate"](model, image, label)[0] for _ in range(3)]  # reading must not change the model
    torch.manual_seed(0)
    fresh = r["LoRALinear"](torch.nn.Linear(6, 6))
    fresh.up.data.normal_()
    kept = fresh.weight.clone()
    fresh.eval(), fresh.eval(), fresh.train()
    return m["history"], losses, rel(fresh.weight, kept)


bad, good = look(), look(fix)
print("three evaluations in a row: as written", bad[1], "repaired", good[1])
print("frozen weight after eval, eval, train: moved by", bad[2], good[2])
print("test loss at the end of main", bad[0][-1][1], good[0][-1][1])
ok = (max(bad[1]) - min(bad[1]) > 0.02 and max(good[1]) - min(good[1]) < 1e-7 and bad[2] > 0.1 and good[2] < 1e-5
      and good[0][-1][1] < bad[0][-1][1] - 0.03)
sys.exit(0 if ok else 1)
