import torch
if True:
	x = torch.ones(1)	# a tab
	print(x)
print('end')
print("no newline")