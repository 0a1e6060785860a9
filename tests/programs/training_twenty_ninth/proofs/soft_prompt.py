import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import math
import torch

KEEP = ("    model = PromptTuned(lm, PROMPT)\n",
        "    import copy\n    pretrained = copy.deepcopy(lm)\n    model = PromptTuned(lm, PROMPT)\n")
FIX = ("nn.Parameter(lm.embed.weight[:length])", "nn.Parameter(lm.embed.weight[:length].detach().clone())")


def look(result):
    lm, pretrained, prompt = result["lm"], result["pretrained"], result["model"].prompt
    assert not lm.embed.weight.requires_grad
    moved = (lm.embed.weight - pretrained.embed.weight).abs().sum(1) > 0
    tokens = result["northern"].sample(300)
    with torch.no_grad():
        loss = [result["next_token_loss"](m(m.embed(tokens)), tokens).item() for m in (pretrained, lm)]
        fresh = result["PromptTuned"](pretrained, 4)
        fresh.prompt = torch.nn.Parameter(prompt.detach().clone())
        gap = (fresh(tokens) - result["model"](tokens)).abs().max().item()
    return moved, loss, gap, prompt.data_ptr() == lm.embed.weight.data_ptr()


moved, loss, gap, shared = look(run("soft_prompt", KEEP))
print(moved.sum().item(), loss, gap, shared)
assert shared and moved[:4].all() and not moved[4:].any()  # the frozen vocabulary's first rows were rewritten
assert loss[1] > loss[0] + 0.01  # the base model got worse at its own text
assert gap > 0.1  # the prompt alone, on the published base model, is not what was tuned
moved, loss, gap, shared = look(run("soft_prompt", KEEP, FIX))
print(moved.sum().item(), loss, gap, shared)
assert not shared and not moved.any() and loss[0] == loss[1] and gap == 0.0
