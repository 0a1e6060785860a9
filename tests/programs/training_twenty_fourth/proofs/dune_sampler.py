import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
torch.set_num_threads(1)

split = ("        trainer = Trainer(data, args)\n        trainer.resume", "        first = trainer\n        trainer = Trainer(data, args)\n        trainer.resume")
keep = ("        trainer.resume(path)\n", "        trainer.resume(path)\n        start = __import__('copy').deepcopy(trainer.ema)\n")
bad = run("dune_sampler", split, keep)
good = run("dune_sampler", split, keep,
           ('"model": self.model.state_dict(), ', '"model": self.model.state_dict(), "ema": self.ema.state_dict(), '),
           ('        self.opt.load_state_dict', '        self.ema.load_state_dict(ckpt["ema"])\n        self.opt.load_state_dict'))


def gap(r):
    return rel(flat(r["start"]), flat(r["first"].ema))


@torch.no_grad()
def held_out(r):
    gen = torch.Generator().manual_seed(77)
    x0 = r["ripples"](4000, gen)
    t = torch.randint(r["STEPS"], (4000,), generator=gen)
    noise = torch.randn(4000, 2, generator=gen)
    ab = r["ALPHA_BAR"][t][:, None]
    return (r["trainer"].ema(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t) - noise).pow(2).mean().item()


def dist(r):
    torch.manual_seed(1)
    return r["distance_to_data"](r["trainer"].sample(600), r["data"])


print("ema after resume vs before:", gap(bad), gap(good))
print("held-out loss of the ema:", held_out(bad), held_out(good))
print("sample distance:", dist(bad), dist(good))
print(bad.output, good.output, sep="\n")
assert gap(bad) > 0.5 and gap(good) == 0.0
assert held_out(bad) > 1.1 * held_out(good) and dist(bad) > 1.3 * dist(good)
