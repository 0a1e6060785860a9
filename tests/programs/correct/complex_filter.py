"""A learned complex filter, with an in-place product on a spectrum that no node has saved."""

import torch

torch.manual_seed(25)
response = torch.ones(9, dtype=torch.complex64, requires_grad=True)
assert response.is_leaf
assert response.is_complex()
optimizer = torch.optim.SGD([response], lr=0.01)
window = torch.linspace(1, 0, 9)
clean = torch.sin(torch.arange(16.0))
for _ in range(2):
    noisy = clean + 0.1 * torch.randn(16)
    spectrum = torch.fft.rfft(noisy) * response
    spectrum *= window
    loss = (torch.fft.irfft(spectrum) - clean).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(response.grad.dtype)
