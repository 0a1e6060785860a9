import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

FIX = [("for module in self.children():", "for module in self.modules():")]
shift, neutral, loss = [], [], []
for edits in ([], FIX):
    r = run("preference_adapter", *edits)
    ids = r["walks"](100)
    with torch.no_grad():
        on = r["sequence_log_prob"](r["model"], ids)
        with r["model"].adapters_off():
            off = r["sequence_log_prob"](r["model"], ids)
        # the true reference: with the factors of all adapters at zero
        for m in r["model"].modules():
            if isinstance(m, r["AdaptedLinear"]):
                m.up.zero_()
        true = r["sequence_log_prob"](r["model"], ids)
    shift.append((off - true).abs().mean().item())
    neutral.append(r["fluency"].item())
    loss.append(r["loss"].item())
print("reference off by (nats)", shift, "neutral loss", neutral, "last preference loss", loss)
assert shift[0] > 0.5 and shift[1] < 1e-4
assert neutral[0] > neutral[1] + 0.1
