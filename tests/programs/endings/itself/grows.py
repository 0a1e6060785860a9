# ended with RuntimeError, exit code 1
text = open(__file__).read()
open(__file__, 'w').write('#\n' + text)
torch.ones(2) @ torch.ones(3)
