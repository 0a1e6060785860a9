# ran to its end, exit code 0
print('unseen')
os.close(1)
