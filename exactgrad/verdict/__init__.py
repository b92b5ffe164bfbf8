"""What a run says: which data it holds for, whether it agrees, which derivatives are wrong."""
