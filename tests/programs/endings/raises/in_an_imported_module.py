# ended with RuntimeError, exit code 1
import shutil, tempfile
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "broken.py"), "w") as file:
    file.write("import torch\ndef refuse():\n    torch.ones(2) @ torch.ones(3)\nrefuse()\n")
sys.path.insert(0, folder)
try:
    import broken
except RuntimeError as error:
    frame = error.__traceback__.tb_next
    print([frame.tb_frame.f_code.co_name, frame.tb_lineno])
    shutil.rmtree(folder)
    raise RuntimeError("it is gone") from None
