import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

# The in-place activation overwrites the tensors that the hook has stored: the "features before the activation" are
# the ones after it.
COPY = ("self.taps[name] = output", "self.taps[name] = output.clone()")


def look(state):
    perceptual, high = state["perceptual"], state["held_out"]
    torch.manual_seed(0)
    fake = (high + 0.1 * torch.randn_like(high)).requires_grad_()
    found = perceptual.extract(fake)
    lowest = min(f.min().item() for f in found.values())
    grad, = torch.autograd.grad(perceptual(fake, high), fake)
    x, plain = high - 0.5, {}
    with torch.no_grad():
        for name, layer in perceptual.vgg.features.named_children():
            x = layer(x.clone())
            plain[name] = x.clone()
        taps = perceptual.extract(high)
    return lowest, grad, {n: rel(taps[n], plain[n]) for n in taps}, {n: rel(taps[n], plain[n.replace("conv", "relu")]) for n in taps}


written, repaired = run("upscale_patches"), run("upscale_patches", COPY)
repaired["perceptual"].vgg.load_state_dict(written["perceptual"].vgg.state_dict())
low_w, grad_w, to_conv_w, to_relu_w = look(written)
low_r, grad_r, to_conv_r, to_relu_r = look(repaired)
print(low_w, low_r, to_conv_w, to_relu_w, to_conv_r, to_relu_r, rel(grad_w, grad_r))
assert low_w == 0 and low_r < -0.1
assert max(to_relu_w.values()) < 1e-6 and min(to_conv_w.values()) > 0.25
assert max(to_conv_r.values()) < 1e-6 and min(to_relu_r.values()) > 0.25
assert rel(grad_w, grad_r) > 0.1
