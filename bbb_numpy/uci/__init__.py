"""The UCI tables: every inference method on the standard splits, resumable, on any executor.

One trial: `trials`, `methods`, `selection`. Many: `running`, `crew`, `executors`. What they leave:
`journal`, `output`. What it says: `tables`, `verdicts`, `machine`, `page`, `pictures`, beside
`published`.
"""
