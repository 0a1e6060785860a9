# ended with RuntimeError, exit code 1
open(__file__, 'w').write('# changed\n' * 9)
torch.ones(2) @ torch.ones(3)
