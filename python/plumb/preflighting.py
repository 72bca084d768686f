"""A look at a planned run before its first step: batches, labels, optimizer, rate, resumption and memory."""

import copy
import dataclasses
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, functional
from torch.optim import Optimizer
from torch.utils import _pytree as tree

from ._plumb import Error
from .arguments import as_tree, require_loss, tensors_of
from .checking import CheckResult, _Batches, _Fork, _gradients_kept, _Run, _seed, check
from .leaving import as_found, eager, evaluating, random_state
from .loops import draw, plain_loop, trainer_loop
from .showing import section
from .watched_loss import LossWatch

_DRAWN = 64  # batches that are looked at, at most


@dataclass(frozen=True)
class Finding:
    """What one look found; `raised`: an alarm. `batches`: those to blame, as the loader yields them, from 0."""

    subject: str
    raised: bool
    text: str
    batches: tuple[int, ...] = ()

    def __repr__(self) -> str:
        some = ", ".join(map(str, self.batches[:4])) + (", …" if len(self.batches) > 4 else "")
        where = f"batch{'es' * (len(self.batches) > 1)} {some}: " if self.batches else ""
        return f"{'!' if self.raised else ' '} {self.subject:<9} {where}{self.text}"


@dataclass(frozen=True, repr=False)
class Preflight:
    """`findings`: alarms first. `checked`: by `plumb.check`, if it came to that. `exit_status`: 3 with alarms, 0 without."""

    title: str
    findings: list[Finding]
    checked: CheckResult | None
    exit_status: int
    seconds: float

    def __bool__(self) -> bool:
        return self.exit_status == 0

    def to_json(self) -> str:
        """An object with these attributes; numbers that are not finite are null."""
        return json.dumps(json.loads(json.dumps(dataclasses.asdict(self)), parse_constant=lambda name: None))

    def _lines(self) -> list[str]:
        count = sum(finding.raised for finding in self.findings)
        return [*map(repr, self.findings[:23]), f"{count or 'no'} alarm{'s' * (count != 1)} in {self.seconds:.3g} s"]

    def __repr__(self) -> str:
        return "\n".join([self.title, *self._lines()])

    def _repr_html_(self) -> str:
        return section(f"Before the first step: {self.title}", notes=self._lines())


def preflight(trainer: Any = None, module: Any = None, loader: Any = None, *, model: Module | None = None,
              optimizer: Optimizer | None = None, loss: Callable[[Any, Any], Tensor] | None = None, scheduler: Any = None,
              steps: int | None = None, warm_up: int | None = None, clip_norm: float | None = None, seconds: float = 50,
              out: Callable[[str], object] | None = print) -> Preflight:
    """Looks at a planned run before its first step, prints at most 25 lines, and leaves everything as it was:

        plumb.preflight(trainer)                                   # of transformers
        plumb.preflight(trainer, module, loader)                   # of Lightning; the loader may be a data module
        plumb.preflight(model=model, optimizer=optimizer, loss=lambda model, batch: …, loader=loader)

    loader: of one's own loop also a list of batches, or a function that makes one.
    scheduler: that of the loop, from which the largest rate and the warm-up follow. steps, warm_up, clip_norm: as of `check`.
    seconds: about the most that it takes. out: gets what is printed; None: nothing is.
    """
    begin = time.perf_counter()
    with random_state(torch.nn.Module()):
        if trainer is not None:
            with trainer_loop(trainer, module, loader) as loop:
                found = _look(loop, hasattr(trainer, "get_train_dataloader"), begin, seconds)
        elif model is None or optimizer is None or loss is None or loader is None:
            raise Error("a loop of one's own has model=, optimizer=, loss= and loader=\npass all four, or a trainer")
        else:
            require_loss(loss)
            others = dict(model=model, loss=loss, batches=loader, clip_norm=clip_norm)
            found = _look(plain_loop(optimizer, scheduler, steps, warm_up, **others), False, begin, seconds)
    if out:
        out(repr(found))
    return found


def _look(loop: dict[str, Any], sets_mode: bool, begin: float, seconds: float) -> Preflight:
    model, optimizer, loss = loop["model"], loop["optimizer"], loop["loss"]
    loop["loss"] = lambda model, batch: loss(model, copy.copy(batch))  # which may take the labels out
    rates = [float(group.get("max_lr", group.get("initial_lr", group["lr"]))) for group in optimizer.param_groups]
    checked = None
    with as_found(model), random_state(model, loop["batches"]), _gradients_kept(model, optimizer.param_groups), eager():
        batches, findings = draw(loop["batches"], _DRAWN), list(_of_optimizer(model, optimizer, sets_mode))
        run = _Run(model, [optimizer], loop["loss"], _Batches(batches, 1), rates, None, loop["clip_norm"])
        good, faults = _of_batches(run._fork(), batches, begin + 0.2 * seconds)
        if good and not any(finding.subject == "optimizer" for finding in findings):
            longest = max(good, key=lambda number: _size(good[number]))
            started = time.perf_counter()
            findings.append(_tried("memory", _step_on_longest, run, rates, good[longest], longest))
            share = seconds / (time.perf_counter() - started) / 300  # of what 150 gradients need in half of the time
            loop["batches"] = [_rows(batch, share) for batch in good.values()]
            affordable = 150 * share * _size(good[longest]) / max(1, _size(_rows(good[longest], share)))
            try:
                checked = check(**loop, budget=int(max(40, min(250, affordable))))
                findings.append(Finding("rate", checked.verdict not in ("trains", "unknown"), checked.answer))
                findings += [Finding("start", True, f"{one.text}; {one.advice}") for one in checked.reasons if one.raised]
                rate = checked.recommended.learning_rate if checked.recommended else max(rates)
                run._batches = _Batches(loop["batches"][:1], 1)
                run._probed = run._batches.probe
                findings += [_tried("overfit", _overfitted, run, rate, 0.1 * seconds), _tried("resuming", _resumed, run, rates)]
            except Error as error:
                findings.append(Finding("rate", True, _line(error)))
    after = f" after {loop['warm_up']} steps" if loop["warm_up"] else ""
    title = (f"{type(model).__name__}, {sum(tensor.numel() for tensor in model.parameters()):,} parameters; "
             f"{type(optimizer).__name__}, {max(rates):.3g}{after}; {loop['steps'] or 'unknown'} steps")
    findings = sorted(faults + findings, key=lambda finding: not finding.raised)
    return Preflight(title, findings, checked, 3 if findings and findings[0].raised else 0, time.perf_counter() - begin)


def _of_optimizer(model: Module, optimizer: Optimizer, sets_mode: bool) -> Iterator[Finding]:
    held = {id(tensor) for group in optimizer.param_groups for tensor in group["params"]}
    foreign = len(held - {id(tensor) for tensor in model.parameters()})
    without = [name for name, tensor in model.named_parameters() if tensor.requires_grad and id(tensor) not in held]
    if foreign:
        yield Finding("optimizer", True, f"{foreign} of its parameters are not the model's; give it this model's")
    elif without:
        yield Finding("optimizer", True, f"it does not update {without[0]} ({len(without)} in all); pass or freeze it")
    idle = [module.training for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
            or isinstance(module, torch.nn.modules.dropout._DropoutNd) and module.p > 0]
    if idle and not any(idle) and not sets_mode:
        yield Finding("mode", True, "dropout and batch norms are in evaluation mode; call model.train()")


def _of_batches(fork: _Fork, batches: list[Any], until: float) -> tuple[dict[int, Any], list[Finding]]:
    """Those that have a loss, and no fault that others have not, by number; and the faults."""
    found: dict[tuple[str, str], set[int]] = {}
    good: dict[int, Any] = {}
    looked = 0
    for number, batch in enumerate(batches):
        if number > 1 and time.perf_counter() > until:
            break
        watch, looked = LossWatch(fork.model), number + 1
        faults = [("inputs", "some numbers are not finite")
                  for tensor in tensors_of(batch) if not bool(tensor.isfinite().all())]
        try:
            _seed(0)
            with evaluating(fork.model), watch:
                value = fork.loss_of(batch, gradient=False)
            failure = f"it is {value}"
        except (IndexError, RuntimeError, ValueError) as error:
            value, failure = math.nan, f"it cannot be computed: {_line(error)}"
        faults += [("inputs", f"some tokens are beyond the {rows} rows of an embedding") for tokens, rows in ((one.tokens, len(one.weight)) for one in watch.lookups)
                   if bool(((tokens < 0) | (tokens >= rows)).any())]
        faults += [("labels", fault) for fault in _of_labels(watch, value)]
        if math.isfinite(value):
            good[number] = batch
        elif not faults:
            faults.append(("loss", failure))
        for fault in faults:
            found.setdefault(fault, set()).add(number)
    findings = []
    for (subject, text), numbers in found.items():
        some = len(numbers) < looked
        findings.append(Finding(subject, True, text, tuple(sorted(numbers)) if some else ()))
        good = {number: batch for number, batch in good.items() if not some or number not in numbers}
    return good, findings


def _of_labels(watch: LossWatch, value: float) -> Iterator[str]:
    """What is wrong with the labels of a batch, and with the scores beside them."""
    for one in watch.losses:
        scores, labels, used, classes = one.scores.float(), one.labels, one.counted, one.scores.shape[-1]
        if not bool(used.any()):
            yield f"all are ignored ({one.ignored})"
        elif bool((used & ((labels < 0) | (labels >= classes))).any()):
            yield f"some are beyond the model's {classes} classes"
        else:
            if bool((scores >= 0).all()) and torch.allclose(scores.sum(-1), scores.new_ones(()), atol=1e-3):
                yield "cross_entropy gets their probabilities, but takes the softmax itself; pass it the scores before"
            mean = float(functional.cross_entropy(scores[used], labels[used]))
            if len(watch.losses) == 1 and mean > 0 and not 0.1 < abs(value) / mean < 10:
                yield "the loss is far from their mean cross-entropy: a sum, or scaled; take the mean"
            if mean > math.log(classes) + 2:
                yield f"their loss begins far above ln({classes}); a smaller output layer, or a norm before it"
    ahead = {loss.ahead(lookup.tokens) for lookup in watch.lookups for loss in watch.losses}
    if 1 not in ahead and ahead & {0, 2}:
        yield f"they are the tokens {'at the same places' if 0 in ahead else 'two places ahead'}; shift them once"


def _tried(subject: str, look: Callable[..., tuple[bool, str]], *arguments: Any) -> Finding:
    try:
        return Finding(subject, *look(*arguments))
    except Exception as error:
        return Finding(subject, True, f"it cannot be tried: {type(error).__name__}: {_line(error)}")


def _step_on_longest(run: _Run, rates: list[float], batch: Any, number: int) -> tuple[bool, str]:
    try:
        _step(run._fork(), batch, rates, 0)
    except torch.OutOfMemoryError:
        return True, f"there is not enough for a step on the longest batch, {number}; shorten its inputs"
    shapes = ", ".join("×".join(map(str, tensor.shape)) for tensor in tensors_of(batch)[:3])
    return False, f"there is enough for a step on the longest batch, {number} ({shapes})"


def _overfitted(run: _Run, rate: float, seconds: float) -> tuple[bool, str]:
    """Steps on one batch, at the best rate that is known, and then at ten times that."""
    run.first = run._judge(run._fork())
    for now in (rate, 10 * rate):
        trial = json.loads(run.attempt(now, 10, 1, 40, seconds))
        losses = [loss for loss in trial["losses"] if loss is not None]
        if trial["outcome"] == "unknown" and trial["steps"][-1] < 20:
            return False, f"not told: there is no time for twenty steps on one batch in {seconds:.2g} s"
        if losses[-1] < run.first - 0.05 * abs(run.first):
            return False, f"the loss of one batch falls from {run.first:.3g} to {losses[-1]:.3g} at {now:.2g}"
    return True, f"the loss of one batch stays at {run.first:.3g}, at {rate:.2g} and at ten times that"


def _resumed(run: _Run, rates: list[float]) -> tuple[bool, str]:
    """Whether a step from saved states is that of the run that went on."""
    on, resumed, batch = run._fork(), run._fork(), run._batches.probe[0]
    for seed in range(3):
        _step(on, batch, rates, seed)
    resumed.model.load_state_dict(copy.deepcopy(on.model.state_dict()))
    for old, new in zip(on.optimizers, resumed.optimizers):
        new.load_state_dict(copy.deepcopy(old.state_dict()))
    for fork in (on, resumed):
        _step(fork, batch, rates, 3)
    for (name, one), other in zip(on.model.named_parameters(), resumed.model.parameters()):
        if not torch.allclose(one, other, 1e-5, 1e-7, equal_nan=True):
            return True, f"a step from saved states changes {name} otherwise: something is in no state_dict"
    return False, "a step from the saved states of model and optimizer is the same"


def _step(fork: _Fork, batch: Any, rates: list[float], seed: int) -> None:
    _seed(seed)
    fork.loss_of(batch)
    fork.step(rates)


def _size(batch: Any) -> int:
    return sum(tensor.numel() for tensor in tensors_of(batch))


def _rows(batch: Any, share: float) -> Any:
    """A share of the rows of a batch, but at least two."""
    tensors = [tensor for tensor in tensors_of(batch) if tensor.dim()]
    size = len(tensors[0]) if tensors else 0
    keep = max(2, int(share * size))
    return batch if keep >= size else tree.tree_map(
        lambda leaf: leaf[:keep] if isinstance(leaf, Tensor) and leaf.shape[:1] == (size,) else leaf, as_tree(batch))


def _line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
