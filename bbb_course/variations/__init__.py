"""Other exercises of the same kind: what each asks, and the edits that make it of the book's.

One module for each chapter, named as its key, with a table `AXES`: for each exercise its axes,
and on an axis the variations of which at most one is chosen.
"""
