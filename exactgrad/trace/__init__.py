"""How a NumPy function runs on exact numbers: arrays, functions, linear algebra, new arrays."""
