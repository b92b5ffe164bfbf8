"""The UCI tables: every inference method on the standard splits, resumable, here or on a cluster.

One trial: `trials`, `methods`, `selection`. Many: `running`, `workers`. What they leave: `records`.
What it says: `tables`, `verdicts`, `machine`, `page`, `pictures`, beside `published`.
"""
