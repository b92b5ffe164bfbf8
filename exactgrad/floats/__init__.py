"""Find the inputs for which a function loses digits in floats, and the line that loses them."""
