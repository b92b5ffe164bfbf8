"""What the source documents claim, repeated: a folder for each source.

`kebude`, `krasser`, `wu`, `mullachery`, `sagar`, `blundell`, and `ours`. Each study has a function
``reproduce(out, seed)`` that writes pictures and numbers to a folder and returns its text.
"""
