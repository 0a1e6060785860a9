# ended with RuntimeError, exit code 1
import shutil, tempfile
os.chdir(tempfile.mkdtemp())
os.rmdir(os.getcwd())
torch.ones(2) @ torch.ones(3)
