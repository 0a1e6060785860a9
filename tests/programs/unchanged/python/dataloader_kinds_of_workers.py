import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
class Data(Dataset):
    def __len__(self): return 6
    def __getitem__(self, i): return torch.full((2,), float(i)) + torch.rand(1), get_worker_info() is None
class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(get_worker_info().id, 6, get_worker_info().num_workers))
class Fails(Data):
    def __getitem__(self, i): return torch.ones(i) @ torch.ones(3)
def seed(number): torch.manual_seed(number)
if __name__ == "__main__":
    torch.manual_seed(0)
    for method in ("fork", "spawn"):
        loader = DataLoader(Data(), batch_size=3, num_workers=1, multiprocessing_context=method,
                            persistent_workers=True, worker_init_fn=seed, pin_memory=False)
        for epoch in range(2):
            for batch, main in loader:
                print(method, epoch, batch.tolist(), main.tolist())
        del loader
    print([t.tolist() for t in DataLoader(Stream(), batch_size=2, num_workers=2, multiprocessing_context="fork")])
    try:
        list(DataLoader(Fails(), num_workers=1, multiprocessing_context="fork"))
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[-1])
