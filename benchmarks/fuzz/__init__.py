"""Hostile calls, files and signals, in child processes with limits: ``make fuzz``.

`pool` holds the values, `calls` the public functions, `verdicts` what counts as a defect, `files`
damaged models and tables, `processes` kills and Ctrl-Cs, `children` the limits.
"""
