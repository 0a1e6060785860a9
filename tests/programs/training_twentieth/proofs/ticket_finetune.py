import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run


def unchanged(before, after):
    same = total = 0
    for a, b in zip(before.parameters(), after.parameters()):
        same += (a.detach().to(b.dtype) == b.detach()).sum().item()
        total += a.numel()
    return same / total


bad = run("ticket_finetune", capture=("main",)).locals["main"]
good = run("ticket_finetune",
           ("copy.deepcopy(pretrained).to(torch.bfloat16)", "copy.deepcopy(pretrained)"),
           ("            logits = model(tokens[idx])\n",
            "            with torch.autocast('cpu', dtype=torch.bfloat16):\n                logits = model(tokens[idx])\n"),
           capture=("main",)).locals["main"]
ub, ug = unchanged(bad["pretrained"], bad["tuned"]), unchanged(good["pretrained"], good["tuned"])
print("share of weights bit-identical after fine-tuning: bf16 weights", ub, " fp32 weights + autocast", ug)
print("test loss: bf16 weights", bad["loss"], " fp32 weights + autocast", good["loss"])
ok = ub > 0.75 and ug < 0.05 and good["loss"] < bad["loss"] - 0.05
sys.exit(0 if ok else 1)
