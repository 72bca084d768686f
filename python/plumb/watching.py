"""Measurements along a training loop of one's own, which they do not change."""

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from . import _plumb
from ._plumb import Error
from .attention import attention_statistics
from .curvature import Hessian
from .leaving import as_found

Losses: TypeAlias = Callable[[], Tensor] | Sequence[Callable[[], Tensor]]

_BLOCK = r"^(.*?\.\d+|[^.]+)"
_SHARPNESS = ("sharpness", "sharpness_error")
_NOISE = ("noise_scale", "noise_trace", "square_gradient")


class Watch:
    """Measures after the first step of an optimizer and after every `every` steps:

        watch = plumb.Watch(model, optimizer, every=100, loss=lambda: criterion(model(x), y))
        for …:                                       # the loop as it is
            if watch.new:
                log(watch.values)                    # a dict of numbers, for any logger

    values: "step", "learning_rate"; "gradient_norm", "update_norm" and "update_ratio" (‖Δθ‖/‖θ‖) of all parameters, and with
        "/BLOCK" of each block; "adam_epsilon_share", of elements whose √v̂ is below Adam's ε. With `loss`, a function without
        arguments on a batch that stays the same: "sharpness", λ_max of the Hessian, or of P⁻¹H for Adam and AdamW, with
        P = (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + ε); "critical_rate", above which oscillations grow on a quadratic loss: 2/λ for gradient
        descent, (2 + 2μ)/λ with momentum μ, (2 + 2β₁)/((1 − β₁)·λ) for Adam (Cohen et al. 2021, arXiv 2103.00065; Cohen et al.
        2022, arXiv 2207.14484); and "rate_share", the largest learning rate as a share of it. An eigenvalue lies within
        "sharpness_error" of λ. Of softmax attention, whichever operation computes it, "attention_entropy", of the weights,
        divided by ln(keys), and "attention_logit", the largest absolute score, with "/BLOCK" of each block.
    history: the values of all measurements. `new`: whether the last step was measured.
    errors: (step, text) of what could not be measured, such as the sharpness of a loss that cannot be differentiated twice. It
        is NaN or left out, and said once, as a warning; training goes on.
    by: a regular expression, of which what it finds in a parameter's name names its block: "layers.3" by default.

    The loss is computed in evaluation mode, so that it does not change from call to call. Weights, buffers, gradients and
    random numbers are as without it. `close()` ends watching.
    """

    def __init__(self, model: Module, optimizer: Optimizer, *, every: int = 100,
                 loss: Losses | None = None, examples: int = 1, by: str = _BLOCK, steps: int = 30) -> None:
        if every < 1 or steps < 1 or examples < 1:
            raise Error("a Watch measures every n steps, n ≥ 1, by at least one product, on at least one example")
        self._parameters = {name: tensor for name, tensor in model.named_parameters() if tensor.requires_grad}
        watched = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
        if not any(id(tensor) in watched for tensor in self._parameters.values()):
            raise Error("the optimizer updates none of the model's parameters\npass the two that belong together")
        self._model, self._optimizer, self._loss = model, optimizer, loss
        self._every, self._steps, self._examples = every, steps, examples
        self._by = by
        self._block = {name: self._block_of(name) for name in self._parameters}
        self._before: dict[str, Tensor] = {}
        self._taken = self._step = 0
        self._said: set[str] = set()
        self.values: dict[str, float] = {}
        self.history: list[dict[str, float]] = []
        self.errors: list[tuple[int, str]] = []
        self.new = False
        self._handles = [optimizer.register_step_pre_hook(self._prepare), optimizer.register_step_post_hook(self._measure)]

    def _block_of(self, name: str) -> str:
        found = re.search(self._by, name)
        return (found[1] if found.re.groups else found[0]) if found else name

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _due(self, step: int) -> bool:
        return step == 1 or step % self._every == 0

    def _attempt(self, what: str, measure: Callable[[], dict[str, Any]], keys: Sequence[str] = ()) -> dict[str, Any]:
        """What a measurement finds; NaN for `keys`, and an entry of `errors`, if it fails in whatever way."""
        try:
            return measure()
        except Exception as error:
            text = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            self.errors.append((self._step, f"no {what}: {text}"))
            if not self._said & {what, text}:
                warnings.warn(f"no {what}: {text}", stacklevel=2)
            self._said |= {what, text}
            return dict.fromkeys(keys, math.nan)

    def _prepare(self, optimizer: Optimizer, arguments: Any, keywords: Any) -> None:
        self.new, self._step = False, self._taken + 1
        if self._due(self._step):
            self._before = self._attempt(
                "norms", lambda: {name: tensor.detach().clone() for name, tensor in self._parameters.items()})

    def _measure(self, optimizer: Optimizer, arguments: Any, keywords: Any) -> None:
        again, self._taken = self._taken == self._step, self._step  # PyTorch calls hooks within super().step(), too
        if again or not self._due(self._taken):
            return
        values: dict[str, float] = {"step": self._taken} | (self._attempt("norms", self._norms) if self._before else {})
        self._before = {}
        finite = math.isfinite(values.get("gradient_norm", 0.0) + values.get("update_norm", 0.0))
        loss = self._loss
        values |= self._attempt("statistics of the optimizer", lambda: self._of_optimizer(finite), _SHARPNESS if loss is not None else ())
        if isinstance(loss, (list, tuple)) and len(loss) > 1:
            values |= self._attempt("noise scale", lambda: self._noise(loss), _NOISE) if finite else dict.fromkeys(_NOISE, math.nan)
        if loss is not None and finite:
            values |= self._attempt("statistics of attention", lambda: self._of_attention(loss))
        self.values, self.new = values, True
        self.history.append(values)

    def _norms(self) -> dict[str, float]:
        squares: dict[str, list[float]] = {}
        for name, tensor in self._parameters.items():
            gradient = tensor.grad
            numbers = (
                0.0 if gradient is None else float(gradient.detach().double().square().sum()),
                float((tensor.detach() - self._before[name]).double().square().sum()),
                float(self._before[name].double().square().sum()),
            )
            for key in ("", "/" + self._block[name]):
                squares[key] = [a + b for a, b in zip(squares.get(key, (0.0, 0.0, 0.0)), numbers)]
        values: dict[str, float] = {"learning_rate": self._optimizer.param_groups[0]["lr"]}
        for key, (of_gradient, update, weights) in squares.items():
            values["gradient_norm" + key] = math.sqrt(of_gradient)
            values["update_norm" + key] = math.sqrt(update)
            values["update_ratio" + key] = math.sqrt(update / weights) if weights else math.nan
        return values

    def _of_optimizer(self, finite: bool) -> dict[str, float]:
        """What depends on the kind of optimizer: the share of elements at Adam's ε, and the sharpness that it sees."""
        scales: dict[str, Tensor] = {}
        factor: float | None = None
        held, elements = 0.0, 0
        for group in self._optimizer.param_groups:
            for name, tensor in self._parameters.items():
                if not any(tensor is one for one in group["params"]):
                    continue
                state = self._optimizer.state.get(tensor, {})
                if "exp_avg_sq" in state and "betas" in group:
                    (beta1, beta2), step = group["betas"], float(state["step"])
                    second = state.get("max_exp_avg_sq", state["exp_avg_sq"])  # the former: AMSGrad
                    root = (second.double() / (1 - beta2**step)).sqrt()
                    held, elements = held + float((root < group["eps"]).sum()), elements + root.numel()
                    # √P⁻¹, so that S·H·S has the eigenvalues of P⁻¹H.
                    scales[name] = ((1 - beta1**step) * (root + group["eps"])).rsqrt().to(tensor.dtype)
                    factor = (2 + 2 * beta1) / (1 - beta1)
                elif isinstance(self._optimizer, torch.optim.SGD):
                    factor = 2 + 2 * group["momentum"] if not group["nesterov"] else None
        values = {"adam_epsilon_share": held / elements} if elements else {}
        loss = self._loss
        if loss is None:
            return values
        values |= dict.fromkeys(_SHARPNESS, math.nan) | (
            self._attempt("sharpness", lambda: self._sharpness(loss, scales)) if finite else {})
        if factor is not None and values["sharpness"] > 0:
            values["critical_rate"] = factor / values["sharpness"]
            values["rate_share"] = max(group["lr"] for group in self._optimizer.param_groups) / values["critical_rate"]
        return values

    def _sharpness(self, loss: Losses, scales: dict[str, Tensor]) -> dict[str, float]:
        """λ_max and its error."""
        with as_found(self._model, weights=False):
            self._model.eval()
            reached = {name: tensor for name, tensor in self._parameters.items() if tensor.grad is not None}
            hessian = Hessian(loss, reached)
            pieces = [scales[name].flatten() if name in scales else torch.ones_like(tensor).flatten().detach()
                      for name, tensor in reached.items()]
            scale = torch.cat(pieces)
            # Not from the last eigenvector, which would hide that another one has become the largest.
            start = torch.randn(scale.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(scale)
            return dict(zip(_SHARPNESS, _plumb.largest_eigenvalue(
                lambda v: scale * (hessian @ (scale * v)), start, self._steps)))

    def _of_attention(self, loss: Losses) -> dict[str, float]:
        with as_found(self._model, weights=False):
            self._model.eval()
            return attention_statistics(self._model, [loss] if callable(loss) else list(loss), self._block_of)

    def _noise(self, losses: Sequence[Callable[[], Tensor]]) -> dict[str, float]:
        """As `noise_scale` of src/plumb/analysis/noise_scale.h, of the mini-batches of `loss`."""
        count, mean, squares = len(losses), torch.zeros((), dtype=torch.float64), 0.0
        tensors = [tensor for tensor in self._parameters.values() if tensor.grad is not None]
        with as_found(self._model, weights=False), torch.enable_grad():
            self._model.eval()
            for loss in losses:
                pieces = torch.autograd.grad(loss(), tensors, allow_unused=True, materialize_grads=True)
                gradient = torch.cat([piece.detach().double().flatten() for piece in pieces])
                squares += float(gradient.square().sum()) / count
                mean = mean.to(gradient) + gradient / count
        small, big, of_mean = self._examples, self._examples * count, float(mean.square().sum())
        square_gradient = (big * of_mean - small * squares) / (big - small)
        trace = (squares - of_mean) / (1 / small - 1 / big)
        return dict(zip(_NOISE, (trace / square_gradient if square_gradient > 0 else math.nan, trace, square_gradient)))


def transformers_callback(*, log: Callable[[dict[str, float]], object] | None = None, **options: Any) -> Any:
    """A callback for transformers' Trainer, `Trainer(…, callbacks=[plumb.transformers_callback(loss=…)])`, that watches its
    optimizer. The options are those of Watch, except that the functions of `loss` get the model. The values go into
    `trainer.state.log_history` with "plumb/" before their names, and to `log`, a function of a dict, if given."""
    import transformers

    class WatchCallback(transformers.TrainerCallback):
        watch: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None,
                           **others: Any) -> None:
            optimizer = getattr(optimizer, "optimizer", optimizer)  # accelerate's wrapper does not call hooks
            self.watch = Watch(model, optimizer, **_of_model(options, model))

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if self.watch.new:
                values = _labelled(self.watch.values)
                state.log_history.append({"step": state.global_step, **values})
                if log is not None:
                    log(values)

        def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.watch.close()

    return WatchCallback()


def lightning_callback(**options: Any) -> Any:
    """The same for Lightning, `Trainer(callbacks=[plumb.lightning_callback(loss=…)])`: the values of the first optimizer go to
    the trainer's loggers, and the functions of `loss` get the LightningModule."""
    try:
        from lightning.pytorch import Callback  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[assignment, import-not-found, unused-ignore]

    class WatchCallback(Callback):  # type: ignore[misc, unused-ignore]
        watch: Any = None

        def on_train_start(self, trainer: Any, module: Any) -> None:
            self.watch = Watch(module, trainer.optimizers[0], **_of_model(options, module))

        def on_train_batch_end(self, trainer: Any, module: Any, *others: Any) -> None:
            if self.watch.new:
                self.watch.new = False  # several batches may be one step
                for logger in trainer.loggers:
                    logger.log_metrics(_labelled(self.watch.values), step=trainer.global_step)

        def on_train_end(self, trainer: Any, module: Any) -> None:
            self.watch.close()

    return WatchCallback()


def _of_model(options: dict[str, Any], model: Any) -> dict[str, Any]:
    """The options with losses that need no arguments."""
    loss = options.get("loss")
    if loss is None:
        return options
    if callable(loss):
        return options | {"loss": lambda: loss(model)}
    return options | {"loss": [lambda one=one: one(model) for one in loss]}


def _labelled(values: dict[str, float]) -> dict[str, float]:
    return {"plumb/" + name: value for name, value in values.items()}
