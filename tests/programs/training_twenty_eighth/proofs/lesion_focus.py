import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("images, retain_graph=True)", "images, create_graph=True)")
probe = ("finetune(model, *make", "probe = finetune.__globals__['FocusLoss'](2.0)(model, *make_patches(32, torch.Generator().manual_seed(1), 1.0))\nprobe_grads = torch.autograd.grad(probe[0], list(model.parameters()), retain_graph=True)\nanswer_grads = torch.autograd.grad(probe[1], list(model.parameters()), retain_graph=True)\nfinetune(model, *make")
wrong, right = run("lesion_focus", probe), run("lesion_focus", repair, probe)
assert not wrong["probe"][2].requires_grad and right["probe"][2].requires_grad
same = lambda r: all(torch.equal(a, b) for a, b in zip(r["probe_grads"], r["answer_grads"]))
assert same(wrong) and not same(right)
out = []
for r in (wrong, right):
    outside = r["FocusLoss"](2.0)(r["model"], r["free_images"], r["free_labels"], torch.zeros(200, 1, 16, 16))[2].item()
    out.append((r["accuracy"](r["model"], r["free_images"], r["free_labels"]), outside))
print("accuracy elsewhere and slopes", out)
assert out[1][0] > out[0][0] + 0.05
