"""What the source documents claim, repeated: a folder for each source.

`kebude`, `krasser`, `wu`, `mullachery`, `sagar`, `blundell`, and `ours`. A study is a file, in this
order: question, models, measures, picture, table, and ``reproduce(out, seed)``, which writes
picture and numbers to a folder and returns the tables. `kit`, `comparing`, `linear_gaussian` serve
several.

The arguments of ``reproduce``: `out`, a Path, the folder, made if missing; `seed`, of all that is
random; `progress`, to show a bar or not, by default only to a person; and where there are more of
them, smaller ones for a quick look. Without its data a study raises MissingDataError, which says
where to get them.
"""
