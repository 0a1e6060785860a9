# ended itself, exit code 1
sys.exit(257)
