from pathlib import Path
from runpy import run_path

from bbb_course.templates import SOLUTIONS

NAME = "which_detector_sees_it"
(SOLUTION,) = Path(SOLUTIONS).rglob(f"*_{NAME}.py")
RIGHT = run_path(str(SOLUTION))[NAME]

# --- a gradient check sees every bug

which_detector_sees_it = {bug: seen | {"gradient check"} for bug, seen in RIGHT.items()}

# --- other minibatches show nothing

which_detector_sees_it = {bug: seen - {"invariance"} for bug, seen in RIGHT.items()}

# --- the value at fixed noise shows what its mean shows

which_detector_sees_it = {
    bug: (seen - {"value"}) | ({"value"} if "mean over noise" in seen else set())
    for bug, seen in RIGHT.items()
}

# --- training ends elsewhere just where the coverage is wrong

which_detector_sees_it = {
    bug: (seen - {"convergence"}) | ({"convergence"} if "coverage" in seen else set())
    for bug, seen in RIGHT.items()
}

# --- nobody looks at the bands

which_detector_sees_it = {bug: seen - {"coverage"} for bug, seen in RIGHT.items()}

# --- every detector sees every bug

which_detector_sees_it = {
    bug: {"gradient check", "value", "mean over noise", "invariance", "convergence", "coverage"}
    for bug in RIGHT
}
