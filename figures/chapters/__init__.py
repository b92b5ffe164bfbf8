"""The figures of each chapter of the book: what computes, apart from what draws."""
