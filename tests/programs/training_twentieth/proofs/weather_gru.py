import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

bad = run("weather_gru")
good = run("weather_gru", ("ids.view(-1, batch_size)", "ids.view(batch_size, -1).t().contiguous()"))
print(bad.output, good.output)

# a column of the batch should be readable text: it is every 20th character instead
column = "".join(bad["itos"][i] for i in bad["train_streams"][:, 0].tolist())
assert column[:200] not in bad["train_text"] and column[:200] == bad["train_text"][: 20 * 200 : 20]
good_column = "".join(good["itos"][i] for i in good["train_streams"][:, 0].tolist())
assert good_column[:200] in good["train_text"]


def loss_on_text(r):  # next-character loss on the plain validation text
    ids = torch.tensor([r["stoi"][c] for c in r["valid_text"]]).unsqueeze(1)
    with torch.no_grad():
        logits, _ = r["model"](ids[:-1])
    return r["criterion"](logits.squeeze(1), ids[1:, 0]).item()


a, b = loss_on_text(bad), loss_on_text(good)
print("loss on the plain text:", a, b)
assert a > 2.0 and b < 0.5
