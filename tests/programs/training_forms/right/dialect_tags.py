import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(11)
FRAMES, MEL, CLASSES = 20, 12, 5


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(MEL, 24, 5, padding=2)
        self.gru = nn.GRU(24, 16, batch_first=True)
        self.out = nn.Linear(16, CLASSES)

    def forward(self, mel):
        h = torch.relu(self.conv(mel)).transpose(1, 2)
        _, last = self.gru(h)
        return self.out(last[0])


class Run:
    def __init__(self, decay=0.9):
        self.live = Tagger()
        self.smooth = AveragedModel(self.live, multi_avg_fn=get_ema_multi_avg_fn(decay))
        self.opt = torch.optim.AdamW(self.live.parameters(), lr=4e-3)
        self.hooks = {"after_step": [self.clip_report, self.blend], "after_epoch": [self.validate]}
        self.norms = []

    def clip_report(self, norm):
        self.norms.append(float(norm))

    def blend(self, _):
        self.smooth.update_parameters(self.live)

    @torch.no_grad()
    def validate(self, batch):
        mel, tag = batch
        self.smooth.eval()
        hit = (self.smooth(mel).argmax(1) == tag).float().mean()
        print(f"accuracy {hit:.3f}  norm {sum(self.norms[-8:]) / 8:.3f}")

    def fit(self, data, held, epochs=5):
        for _ in range(epochs):
            for mel, tag in data:
                self.opt.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(self.live(mel), tag).backward()
                norm = nn.utils.clip_grad_norm_(self.live.parameters(), 2.0)
                self.opt.step()
                for call in self.hooks["after_step"]:
                    call(norm)
            for call in self.hooks["after_epoch"]:
                call(held)


proto = torch.randn(CLASSES, MEL, 1)


def draw(n):
    tag = torch.randint(CLASSES, (n,))
    return proto[tag] + 1.5 * torch.randn(n, MEL, FRAMES), tag


Run().fit([draw(32) for _ in range(8)], draw(200))
