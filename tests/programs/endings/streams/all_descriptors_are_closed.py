# ended itself, exit code 0
# gap: the program closed the journal
time.sleep(1)
os.closerange(3, 60)
print((x * 3).sum().item())
