"""What the subcommands of ``bbb-numpy`` do; `bbb_numpy.__main__` reads their arguments."""
