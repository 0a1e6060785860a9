"""expect: saved-tensor-modified-inplace

A spectrum is filtered in place after its magnitude went into the loss.
"""

import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(length))
        self.register_buffer("window", torch.linspace(1, 0, length // 2 + 1))

    def magnitude(self, spectrum):
        return spectrum.abs()  # role: saved_here

    def lowpass(self, spectrum):
        spectrum *= self.window  # role: modified_here
        return torch.fft.irfft(spectrum)

    def forward(self, signal):
        spectrum = torch.fft.rfft(signal * self.gain)
        magnitude = self.magnitude(spectrum)
        return self.lowpass(spectrum), magnitude


torch.manual_seed(12)
clean = torch.sin(torch.arange(16.0))
denoiser = Denoiser(16)
output, magnitude = denoiser(clean + 0.1 * torch.randn(16))
fidelity = (output - clean).pow(2).mean()
sparsity = magnitude.mean()
(fidelity + 0.01 * sparsity).backward()  # role: needed_here
