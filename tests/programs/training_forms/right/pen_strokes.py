import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(45)
LETTERS, COLUMNS, HEIGHT = 7, 32, 12
glyphs = torch.randn(LETTERS + 1, HEIGHT)


def words(n):
    sizes = torch.randint(4, 13, (n,))
    text = torch.randint(1, LETTERS + 1, (n, 12))
    strip = 0.3 * torch.randn(n, HEIGHT, COLUMNS)
    for r in range(n):
        for j in range(sizes[r]):
            left = j * COLUMNS // int(sizes[r])
            strip[r, :, left:left + 2] += glyphs[text[r, j]].unsqueeze(1)
    return strip, text, sizes


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([
            nn.Conv1d(HEIGHT, 48, 3, padding=1),
            nn.Conv1d(48, 48, 3, padding=1),
        ])
        self.pool = (1, 1)
        self.letters = nn.Linear(48, LETTERS + 1)

    def forward(self, strip):
        h = strip
        for conv, width in zip(self.stages, self.pool):
            h = F.max_pool1d(F.relu(conv(h)), width)
        return self.letters(h.permute(2, 0, 1)).log_softmax(-1)


reader = Reader()
opt = torch.optim.Adam(reader.parameters(), lr=5e-3)
for step in range(60):
    strip, text, sizes = words(16)
    logp = reader(strip)
    columns = torch.full((len(strip),), logp.shape[0])
    loss = F.ctc_loss(logp, text, columns, sizes, blank=0, zero_infinity=True)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(reader.parameters(), 5.0)
    opt.step()
    if step % 15 == 14:
        print(f"{step + 1} ctc {loss.item():.4f}")
