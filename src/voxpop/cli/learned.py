"""What 'voxpop learn' wrote, and features that fit it, for every command that uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from voxpop.cli.paths import FileArgument
from voxpop.errors import BadInput

if TYPE_CHECKING:
    from voxpop.io import Features
    from voxpop.learn.learner import Learner

ModelFile = Annotated[Path, FileArgument(metavar="MODEL", show_default=False, help="What 'voxpop learn -o' wrote.")]


def learner_in(path: Path) -> Learner:
    """The learner in a file."""
    from voxpop.learn.learner import Learner
    from voxpop.methods.files import load

    found: Any = load(path)
    if not isinstance(found, Learner):
        raise BadInput(f"{path}: holds a {_named(found)}, which has no classifier; give what 'voxpop learn -o' wrote")
    return found


def matching(learner: Learner, features: Features) -> Features:
    """Features of the kind and width that was learned from; named columns in its order."""
    wants, has = learner.texts_ is not None, features.kind == "texts"
    if wants != has:
        wanted = "texts; name their column with --text" if wants else "numbers or images, and these are texts"
        raise BadInput(f"{features.source}: the model was trained on {wanted}")
    features = features.columns(getattr(learner, "feature_names_in_", None))
    if features.kind == "numbers" and len(features.X.shape) == 2 and features.X.shape[1:] != learner.shape_:
        trained = " x ".join(map(str, learner.shape_))
        raise BadInput(
            f"{features.source}: a row has {features.X.shape[1]:,} numbers, and the model was trained on {trained}; "
            "give the features that it was trained on"
        )
    return features


def _named(found: Any) -> str:
    from voxpop.results import Consensus

    return "consensus" if isinstance(found, Consensus) else type(found).__name__
