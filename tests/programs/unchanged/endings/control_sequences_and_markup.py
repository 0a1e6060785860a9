import sys, torch
print("\x1b[31mred\x1b[0m \x07 \x9b1m [bold]not bold[/bold] \u202e right to left")
sys.stderr.write("\x1b]0;title\x07[red]x[/red]\n")
class 数据(Exception): pass
数 = torch.ones(1)
raise 数据("\x1b[2J[link=x]y[/link]\x00\u202e\r\b")
