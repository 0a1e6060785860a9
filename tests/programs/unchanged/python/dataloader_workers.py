import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 6
    def __getitem__(self, i): return torch.full((2,), float(i)), i
if __name__ == "__main__":
    for workers in (0, 2):
        torch.manual_seed(0)
        for batch, index in DataLoader(Data(), batch_size=3, num_workers=workers, multiprocessing_context="fork" if workers else None):
            print(workers, batch.sum().item(), index.tolist())
