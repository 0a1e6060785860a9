import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run, rel, flat_grad

FIX = [("    total = 0.0\n", "    total = 0.0\n    tokens = sum(len(answer) for _, answer in dialogues)\n"),
       ("answer_loss(model, ids, labels) / ACCUMULATE", "answer_loss(model, ids, labels, 'sum') / tokens")]


class Idle:
    def zero_grad(self): [p.grad.zero_() for p in model.parameters()]
    def step(self): pass


gaps, losses = [], []
for edits in ([], FIX):
    r = run("instruct_batches", *edits)
    losses.append(r["token_loss"])
    r["nn"].utils.clip_grad_norm_, clip = lambda *a: None, r["nn"].utils.clip_grad_norm_
    torch.manual_seed(0)
    model = r["CausalLM"]()
    dialogues = r["effective_batch"](16)
    r["answer_loss"](model, *r["collate"](dialogues)).backward()
    whole = flat_grad(model).clone()
    r["train_update"](model, Idle(), dialogues)
    gaps.append(rel(flat_grad(model), whole))
    r["nn"].utils.clip_grad_norm_ = clip
print("accumulated gradient against that of the whole batch", gaps, "token loss", losses)
assert gaps[0] > 0.3 and gaps[1] < 1e-4
assert losses[1] < losses[0] - 0.005
