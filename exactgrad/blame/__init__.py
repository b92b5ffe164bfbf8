"""Where a wrong gradient goes wrong: the line to look at first, and the mistake in words."""
