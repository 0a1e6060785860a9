import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("chosen + (vectors - chosen).detach()", "vectors + (chosen - vectors).detach()")
written, repaired = run("pulse_codes"), run("pulse_codes", repair)


def rebuild_gradients(r):
    model, traces = r["model"], r["held_out"]
    model.zero_grad()
    rebuilt, numbers, _ = model(traces)
    torch.nn.functional.mse_loss(rebuilt, traces).backward()
    size = lambda m: sum(p.grad.norm().item() for p in m.parameters() if p.grad is not None)
    return size(model.encoder), size(model.book)


# the rebuild loss has to reach the encoder (straight through) and not the code book
e, b = rebuild_gradients(written)
assert e == 0 and b > 0, (e, b)
e, b = rebuild_gradients(repaired)
assert e > 0 and b == 0, (e, b)


def decoder_sees_codes(r):
    model, traces = r["model"], r["held_out"]
    with torch.no_grad():
        passed, numbers, _ = model.book(model.encode(traces))
        return rel(passed, model.book.entries(numbers))


assert decoder_sees_codes(written) > 0.01 and decoder_sees_codes(repaired) < 1e-5
error = lambda r: r["stored_error"](r["model"], r["held_out"])[0]
assert error(written) > 1.5 * error(repaired), (error(written), error(repaired))
print("ok", error(written), error(repaired))
