"""What the source documents claim, repeated: a folder for each source.

`kebude`, `krasser`, `wu`, `mullachery`, `sagar`, `blundell`, and `ours`. The rooms of a study:
`models`, what is trained; `scores`, what is measured; `plots`, what is drawn; `study`, whose
``reproduce(out, seed)`` writes pictures and numbers to a folder and returns the tables, which stand
there or, where they are long, in `tables`. What fits one module is one. `comparing` and
`linear_gaussian` serve several studies.

The arguments of ``reproduce``: `out`, a Path, the folder, made if missing; `seed`, of all that is
random; `progress`, to show a bar or not, by default only to a person; and where there are more of
them, smaller ones for a quick look. Without its data a study raises MissingDataError, which says
where to get them.
"""
