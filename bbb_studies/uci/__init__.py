"""The UCI tables: every inference method on the standard splits, resumable, here or on a cluster.

One trial: `methods`, `selection`, `trials`, `gaps`. Many: `running`, `workers`. What they leave:
`records`. What it says: `tables`, `verdicts`, `hierarchy`, `page`, `pictures`.
"""
