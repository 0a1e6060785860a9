# ended itself, exit code 3
raise SystemExit(3)
