import io, os, sys, torch
kept = sys.stdout
sys.stdout = io.StringIO()
print(torch.ones(1))
text = sys.stdout.getvalue()
sys.stdout = kept
print(text)
class Loud:
    def write(self, text): os.write(1, text.upper().encode()); return len(text)
    def flush(self): pass
sys.stdout = Loud()
print("quiet", torch.zeros(1))
sys.stderr = sys.stdout
torch.ones(2) @ torch.ones(3)
