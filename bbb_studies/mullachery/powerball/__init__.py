"""Which bin a lottery ball is from (D37)."""
