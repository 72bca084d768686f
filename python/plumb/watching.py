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

from ._plumb import Error
from .arguments import Optimizers, losses_of, optimizers_of
from .attention import attention_statistics
from .curvature import Hessian
from .leaving import as_found, evaluate
from .solver import largest_eigenvalue

Losses: TypeAlias = Callable[[], Tensor] | Sequence[Callable[[], Tensor]]

_BLOCK = r"^(.*?\.\d+|[^.]+)"
_SHARPNESS = ("sharpness", "sharpness_error")
_ADAM = (torch.optim.Adam, torch.optim.AdamW)
_NOISE = ("noise_scale", "noise_trace", "square_gradient")


class Watch:
    """Measures after the first step of an optimizer and after every `every` steps; of several, in a list, a step is one of each:

        watch = plumb.Watch(model, optimizer, every=100, loss=lambda: criterion(model(x), y))
        for …:                                       # the loop as it is
            if watch.new:
                log(watch.values)                    # a dict of numbers, for any logger

    values: "step"; "learning_rate", the largest; "gradient_norm", of the gradients as they enter the step, after any clipping,
        "update_norm" and "update_ratio" (‖Δθ‖/‖θ‖) of all parameters of the optimizer, and with "/BLOCK" of each block;
        "adam_epsilon_share", of elements whose √v̂ is below Adam's ε. With `loss`, a function without arguments on a batch that
        stays the same: "sharpness", λ_max of the Hessian, or of P⁻¹H for Adam and AdamW, with
        P = (1 − β₁ᵗ)·(√(v/(1 − β₂ᵗ)) + ε), without the elements that have had no gradient yet, "adam_unseen_share" of all;
        "critical_rate", above which oscillations grow on a quadratic loss: 2/λ for gradient descent, (2 + 2μ)/λ with momentum
        μ, (2 + 2β₁)/((1 − β₁)·λ) for Adam (Cohen et al. 2021, arXiv 2103.00065; Cohen et al. 2022, arXiv 2207.14484), less
        with weight decay; and "rate_share", the learning rate as a share of it. An eigenvalue lies within "sharpness_error" of
        λ. Of softmax attention, whichever operation computes it, "attention_entropy", of the weights, divided by ln(keys), and
        "attention_logit", the largest absolute score, with "/BLOCK" of each block.
    loss: one function, or a list of several on independent batches of `examples` examples each: then all is of their mean, and
        there is the noise scale tr Σ/‖G‖² in examples, "noise_scale", with "noise_trace" and "square_gradient".
    steps: the most of the Lanczos process, each of which costs two gradients; it ends once the error is a hundredth of λ.
    history: the values of all measurements. `new`: whether the last step was measured.
    errors: (step, text) of what could not be measured, such as the sharpness of a loss that cannot be differentiated twice. It
        is NaN or left out, and said once, as a warning; training goes on.
    by: a regular expression, of which what it finds in a parameter's name names its block: "layers.3" by default.

    The loss is computed in evaluation mode, so that it does not change from call to call, except that batch norms use the
    statistics of the batch, as in training. Weights, buffers, gradients and random numbers are as without it.
    """

    def __init__(self, model: Module, optimizer: Optimizers, *, every: int = 100,
                 loss: Losses | None = None, examples: int = 1, by: str = _BLOCK, steps: int = 30) -> None:
        if every < 1 or steps < 1 or examples < 1:
            raise Error("a Watch measures every n steps, n ≥ 1, by at least one product, on at least one example")
        self._losses = [] if loss is None else losses_of(loss, 0)
        self._optimizers = optimizers_of(optimizer)
        watched = {id(tensor) for one in self._optimizers for group in one.param_groups for tensor in group["params"]}
        self._parameters = {name: tensor for name, tensor in model.named_parameters()
                            if tensor.requires_grad and id(tensor) in watched}
        if not self._parameters:
            raise Error("the optimizer updates none of the model's parameters\npass the two that belong together")
        self._names = {id(tensor): name for name, tensor in self._parameters.items()}
        self._model = model
        self._every, self._steps, self._examples = every, steps, examples
        self._by = by
        self._block = {name: self._block_of(name) for name in self._parameters}
        self._before: dict[str, Tensor] = {}
        # Of the present step: squared norms of the gradients, and of the updates and weights.
        self._gradients: dict[str, float] = {}
        self._moved: dict[str, tuple[float, float]] = {}
        self._waiting = {id(one) for one in self._optimizers}
        self._taken = self._step = 0
        self._said: set[str] = set()
        self.values: dict[str, float] = {}
        self.history: list[dict[str, float]] = []
        self.errors: list[tuple[int, str]] = []
        self.new = False
        self._handles = [handle for one in self._optimizers for handle in (
            one.register_step_pre_hook(self._prepare), one.register_step_post_hook(self._measure))]

    def _block_of(self, name: str) -> str:
        found = re.search(self._by, name)
        return (found[1] if found.re.groups else found[0]) if found else name

    def close(self) -> None:
        """Ends watching: the optimizer's hooks are removed."""
        for handle in self._handles:
            handle.remove()

    def _due(self, step: int) -> bool:
        return step == 1 or step % self._every == 0

    def _attempt(self, what: str, measure: Callable[[], dict[str, Any] | None], keys: Sequence[str] = ()) -> dict[str, Any]:
        """What a measurement finds; NaN for `keys`, and an entry of `errors`, if it fails in whatever way."""
        try:
            return measure() or {}
        except Exception as error:
            text = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
            self.errors.append((self._step, f"no {what}: {text}"))
            self._say({what, text}, f"no {what}: {text}")
            return dict.fromkeys(keys, math.nan)

    def _say(self, about: set[str], text: str) -> None:
        """Once about each."""
        if not self._said & about:
            warnings.warn(text, stacklevel=3)
        self._said |= about

    def _of(self, optimizer: Optimizer) -> dict[str, Tensor]:
        return {self._names[id(tensor)]: tensor for group in optimizer.param_groups for tensor in group["params"]
                if id(tensor) in self._names}

    def _prepare(self, optimizer: Optimizer, arguments: Any, keywords: Any) -> Any:
        self.new, self._step = False, self._taken + 1
        if not self._due(self._step):
            return None
        closure = keywords.get("closure", arguments[1] if len(arguments) > 1 else None)
        self._attempt("norms", lambda: self._begin(optimizer, closure is None))
        if not callable(closure):
            return None

        def observed() -> Any:
            value = closure()  # which computes the gradients
            self._attempt("norms", lambda: self._take_gradients(optimizer))
            return value
        return (arguments[0], observed, *arguments[2:]) if len(arguments) > 1 else arguments, (
            keywords | {"closure": observed} if "closure" in keywords else keywords)

    def _begin(self, optimizer: Optimizer, gradients: bool) -> None:
        """The gradients as they enter the step, before the optimizer clips, scales or frees them, and the weights."""
        own = self._of(optimizer)
        if own.keys() <= self._before.keys() and all(torch.equal(self._before[name], tensor) for name, tensor in own.items()):
            return  # PyTorch calls hooks within super().step(), too
        for name in own:
            self._gradients.pop(name, None)
        if gradients:
            self._take_gradients(optimizer)
        self._before |= {name: tensor.detach().clone() for name, tensor in own.items()}

    def _take_gradients(self, optimizer: Optimizer) -> None:
        scale = float(getattr(optimizer, "grad_scale", None) or 1)  # set by a GradScaler for fused steps, which divide by it
        for name, tensor in self._of(optimizer).items():
            if tensor.grad is not None and name not in self._gradients:  # of several calls of a closure, the first
                self._gradients[name] = float(tensor.grad.detach().double().div(scale).square().sum())

    def _take_updates(self, optimizer: Optimizer) -> None:
        for name, tensor in self._of(optimizer).items():
            if (before := self._before.pop(name, None)) is not None:
                moved = (tensor.detach() - before).double()
                self._moved[name] = (float(moved.square().sum()), float(before.double().square().sum()))

    def _measure(self, optimizer: Optimizer, arguments: Any, keywords: Any) -> None:
        due = self._due(self._step)
        if self._taken == self._step:
            return  # the outer one of two steps, one of which calls the other
        if due:
            self._attempt("norms", lambda: self._take_updates(optimizer))
        self._waiting.discard(id(optimizer))
        if self._waiting:
            return
        self._taken, self._waiting = self._step, {id(one) for one in self._optimizers}
        if not due:
            return
        values: dict[str, float] = {"step": self._taken} | (self._attempt("norms", self._norms) if self._moved else {})
        self._before = {}
        finite = math.isfinite(values.get("gradient_norm", 0.0) + values.get("update_norm", 0.0))
        values |= self._attempt("statistics of the optimizer", lambda: self._of_optimizer(finite), _SHARPNESS if self._losses else ())
        if len(self._losses) > 1:
            values |= self._attempt("noise scale", self._noise, _NOISE) if finite else dict.fromkeys(_NOISE, math.nan)
        if self._losses and finite:
            values |= self._attempt("statistics of attention", self._of_attention)
        self._gradients, self._moved = {}, {}
        self.values, self.new = values, True
        self.history.append(values)
        norms = [one.get("gradient_norm", 0.0) for one in self.history[-5:]]
        if len(norms) == 5 and 0 < max(norms) and max(norms) - min(norms) <= 1e-5 * max(norms):
            self._say({"clipped"}, f"gradient_norm was {max(norms):.4g} five times: it is that of the gradients as they enter the "
                      "step, after any clipping, and does not show how large they were before")

    def _norms(self) -> dict[str, float]:
        squares: dict[str, list[float]] = {}
        for name, moved in self._moved.items():
            for key in ("", "/" + self._block[name]):
                squares[key] = [a + b for a, b in zip(squares.get(key, (0.0,) * 3), (self._gradients.get(name, 0.0), *moved))]
        values = {} if (rate := self._rate()) is None else {"learning_rate": rate}
        for key, (of_gradient, update, weights) in squares.items():
            values["gradient_norm" + key] = math.sqrt(of_gradient)
            values["update_norm" + key] = math.sqrt(update)
            values["update_ratio" + key] = math.sqrt(update / weights) if weights else math.nan
        return values

    def _rate(self) -> float | None:
        """The largest learning rate, as a number: schedulers write into rates that are tensors."""
        return max((float(group["lr"]) for one in self._optimizers for group in one.param_groups if "lr" in group), default=None)

    def _of_optimizer(self, finite: bool) -> dict[str, float]:
        """What depends on the kind of optimizer: the share of elements at Adam's ε, and the sharpness that it sees."""
        scales: dict[str, Tensor] = {}
        stability: list[tuple[str, float, float]] = []
        held = unseen = elements = 0
        for optimizer, group in ((one, group) for one in self._optimizers for group in one.param_groups):
            stability.append(_stability(optimizer, group))
            for tensor in group["params"] if isinstance(optimizer, _ADAM) else ():
                state = optimizer.state.get(tensor, {})
                if id(tensor) not in self._names or "exp_avg_sq" not in state:
                    continue
                if "step" not in state:
                    raise Error(f"{type(optimizer).__name__} does not keep the number of its steps where Adam does")
                (beta1, beta2), step = map(float, group["betas"]), float(state["step"])
                second = state.get("max_exp_avg_sq", state["exp_avg_sq"])  # the former: AMSGrad
                root = (second.double() / (1 - beta2**step)).sqrt()
                held, elements = held + int((root < group["eps"]).sum()), elements + root.numel()
                unseen += int((root == 0).sum())
                # √P⁻¹, so that S·H·S has the eigenvalues of P⁻¹H. Where v = 0, no gradient has told P.
                scale = ((1 - beta1**step) * (root + group["eps"])).rsqrt().masked_fill(root == 0, 0)
                scales[self._names[id(tensor)]] = scale.to(tensor.dtype)
        values = {"adam_epsilon_share": held / elements} if elements else {}
        if not self._losses:
            return values
        kinds = {kind for kind, _, _ in stability}
        known = kinds in ({"Adam"}, {"SGD"})
        values |= {"adam_unseen_share": unseen / elements} if elements and known else {}
        values |= dict.fromkeys(_SHARPNESS, math.nan) | (
            self._attempt("sharpness", lambda: self._sharpness(scales if known else {})) if finite else {})
        if not known:
            self._say({"critical"}, "no critical rate: Plumb knows that of SGD, Adam and AdamW alone, and this is "
                      f"{' and '.join(sorted(kinds))}; sharpness is that of the loss")
        elif values["sharpness"] > 0:
            values["critical_rate"] = 1 / max(slope * values["sharpness"] + least for _, slope, least in stability)
            if (rate := self._rate()) is not None:
                values["rate_share"] = rate / values["critical_rate"]
        return values

    def _sharpness(self, scales: dict[str, Tensor]) -> dict[str, float]:
        """λ_max and its error."""
        with as_found(self._model, weights=False):
            evaluate(self._model)
            reached = {name: tensor for name, tensor in self._parameters.items() if name in self._gradients}
            hessian = Hessian(self._losses, reached)
            pieces = [scales[name].flatten() if name in scales else torch.ones_like(tensor).flatten().detach()
                      for name, tensor in reached.items()]
            scale = torch.cat(pieces)
            # Not from the last eigenvector, which would hide that another one has become the largest.
            start = torch.randn(scale.numel(), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(scale)
            return dict(zip(_SHARPNESS, largest_eigenvalue(
                lambda v: scale * (hessian @ (scale * v)), start, self._steps)))

    def _of_attention(self) -> dict[str, float]:
        with as_found(self._model, weights=False):
            evaluate(self._model)
            return attention_statistics(self._model, self._losses, self._block_of)

    def _noise(self) -> dict[str, float]:
        """As `noise_scale` of src/plumb/analysis/noise_scale.h, of the mini-batches of `loss`."""
        count, mean, squares = len(self._losses), torch.zeros((), dtype=torch.float64), 0.0
        tensors = [tensor for name, tensor in self._parameters.items() if name in self._gradients]
        with as_found(self._model, weights=False), torch.enable_grad():
            evaluate(self._model)
            for loss in self._losses:
                pieces = torch.autograd.grad(loss(), tensors, allow_unused=True, materialize_grads=True)
                gradient = torch.cat([piece.detach().double().flatten() for piece in pieces])
                squares += float(gradient.square().sum()) / count
                mean = mean.to(gradient) + gradient / count
        small, big, of_mean = self._examples, self._examples * count, float(mean.square().sum())
        square_gradient = (big * of_mean - small * squares) / (big - small)
        trace = (squares - of_mean) / (1 / small - 1 / big)
        return dict(zip(_NOISE, (trace / square_gradient if square_gradient > 0 else math.nan, trace, square_gradient)))


def _stability(optimizer: Optimizer, group: dict[str, Any]) -> tuple[str, float, float]:
    """The kind of optimizer, and of the line that 1/critical rate is in λ its slope and its value at 0."""
    decay, adam = float(group.get("weight_decay", 0)), isinstance(optimizer, _ADAM)
    if group.get("maximize") or not (adam or isinstance(optimizer, torch.optim.SGD)):
        return type(optimizer).__name__, math.nan, math.nan
    if adam:
        beta1 = float(group["betas"][0])
        decoupled = group.get("decoupled_weight_decay", isinstance(optimizer, torch.optim.AdamW))
        kind = "Adam" if decoupled or not decay else "Adam with weight decay in the gradient"
        return kind, (1 - beta1) / (2 + 2 * beta1), decay / 2
    momentum = float(group.get("momentum", 0))
    share = 1 + 2 * momentum if group.get("nesterov") else 1 - group.get("dampening", 0) if momentum else 1
    return "SGD", share / (2 + 2 * momentum), decay * share / (2 + 2 * momentum)


def transformers_callback(*, log: Callable[[dict[str, float]], object] | None = None, **options: Any) -> Any:
    """A callback for transformers' Trainer, `Trainer(…, callbacks=[plumb.transformers_callback(loss=…)])`, that watches its
    optimizer. The options are those of Watch, except that the functions of `loss` get the model. The values go into
    `trainer.state.log_history` with "plumb/" before their names, and to `log`, a function of a dict, if given."""
    import transformers

    class WatchCallback(transformers.TrainerCallback):
        watch: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None,
                           **others: Any) -> None:
            self.watch = Watch(model, optimizer, **_of_model(options, model))
            self.watch._taken = self.watch._step = state.global_step  # of a run that is resumed

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if self.watch.new:
                self.watch.new = False  # a step that overflows is left out, but ends
                values = _labelled(self.watch.values)
                state.log_history.append({"step": state.global_step, **values})
                if log is not None:
                    log(values)

        def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            self.watch.close()

    return WatchCallback()


def lightning_callback(**options: Any) -> Any:
    """The same for Lightning, `Trainer(callbacks=[plumb.lightning_callback(loss=…)])`: the values go to the
    trainer's loggers, and the functions of `loss` get the LightningModule."""
    try:
        from lightning.pytorch import Callback  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from pytorch_lightning import Callback  # type: ignore[assignment, import-not-found, unused-ignore]

    class WatchCallback(Callback):  # type: ignore[misc, unused-ignore]
        watch: Any = None

        def on_train_start(self, trainer: Any, module: Any) -> None:
            self.watch = Watch(module, trainer.optimizers, **_of_model(options, module))
            self.watch._taken = self.watch._step = trainer.global_step // len(trainer.optimizers)

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
