"""The plain classifier for use without voxpop: TorchScript or ONNX, rows in, p(class) out."""

from __future__ import annotations

import io
import json
import warnings
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from voxpop.errors import BadInput, RunFailed

if TYPE_CHECKING:
    from voxpop.learn.learner import Learner

SAME = 1e-4  # how far apart probabilities of the two may be
ROWS = 5  # that are compared


class Classifier(nn.Module):
    """Probabilities, as ``predict_proba`` has them."""

    def __init__(self, network: nn.Module, temperature: float) -> None:
        super().__init__()
        self.network, self.temperature = network, temperature

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.network(x) / self.temperature, 1)


def export(learner: Learner, path: str | PathLike[str]) -> None:
    """Write the classifier of a fitted learner to ``path``: .pt (TorchScript) or .onnx. It is checked before."""
    from voxpop.io.write import writing

    content = exported(learner, path)
    with writing(path) as file:
        file.write(content)


def check_path(path: str | PathLike[str]) -> None:
    """That its form can be written here."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".pt", ".onnx"):
        raise BadInput(f"{path}: name it .pt for TorchScript or .onnx for ONNX")
    absent = [name for name in ("onnx", "onnxscript") if suffix == ".onnx" and find_spec(name) is None]
    if absent:
        raise BadInput(f"{path}: ONNX needs {' and '.join(absent)} (pip install onnx onnxscript); or write a .pt file")


def exported(learner: Learner, path: str | PathLike[str]) -> bytes:
    """What ``export`` writes to a file of this name."""
    check_path(path)
    learner._require_fitted()
    plain = Classifier(learner.model_, learner.temperature_).eval()
    example = torch.randn(ROWS, *learner.shape_, generator=torch.Generator().manual_seed(0))
    form = _torchscript if Path(path).suffix.lower() == ".pt" else _onnx
    return form(plain, example, _facts(learner))


def _facts(learner: Learner) -> dict[str, str]:
    """What goes with the file: which column is which class, and which features it wants."""
    names = getattr(learner, "feature_names_in_", None)
    facts = {
        "classes": json.dumps([str(name) for name in learner.classes_]),
        "shape": json.dumps(list(learner.shape_)),
        "method": type(learner).__name__,
    }
    return facts if names is None else {**facts, "features": json.dumps([str(name) for name in names])}


def _torchscript(plain: nn.Module, example: Tensor, facts: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of torch.jit, as such
        warnings.filterwarnings("ignore", message="(Converting|Iterating|torch.tensor results|Using)")  # of the tracer
        traced: Any = torch.jit.trace(plain, example, check_trace=False)  # type: ignore[no-untyped-call]
        torch.jit.save(traced, out, _extra_files=facts)
        again = torch.jit.load(io.BytesIO(out.getvalue()))  # type: ignore[no-untyped-call]
        _compare(again, plain, example, "TorchScript")
    return out.getvalue()


def _onnx(plain: nn.Module, example: Tensor, facts: dict[str, str]) -> bytes:
    import onnx

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        program: Any = torch.onnx.export(
            plain,
            (example,),
            input_names=["x"],
            output_names=["p"],
            dynamic_shapes=({0: torch.export.Dim("rows")},),
            dynamo=True,
            verbose=False,
        )
    model = program.model_proto
    onnx.helper.set_model_props(model, facts)
    content: bytes = model.SerializeToString()
    _compare(_onnx_runner(content), plain, example, "ONNX")
    return content


def _onnx_runner(content: bytes) -> Any:
    """What computes an ONNX model: its runtime where it is installed, else the reference of the format."""
    if find_spec("onnxruntime") is not None:
        import onnxruntime

        run = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run
    else:
        from onnx.reference import ReferenceEvaluator

        run = ReferenceEvaluator(content).run
    return lambda x: torch.as_tensor(run(None, {"x": x.numpy()})[0])


def _compare(exported: Any, plain: nn.Module, example: Tensor, form: str) -> None:
    """The same answers, also to another number of rows than it was traced with."""
    with torch.no_grad():
        for x in (example, example[:1], torch.cat([example, example.flip(0)])):
            apart = float((exported(x) - plain(x)).abs().max())
            if not apart <= SAME:
                raise RunFailed(
                    f"the network does not survive as {form}: probabilities differ by {apart:.2g}; "
                    "does its forward depend on the data, or draw random numbers?"
                )
