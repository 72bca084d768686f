"""Whether a planned run will train, and at which learning rates: trials of any module, optimizer and loader, from copies of
them. The rules are those of `plumb check`, in C++ (docs/check.md)."""

import contextlib
import copy
import itertools
import json
import math
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from . import _plumb
from ._plumb import Error
from .arguments import Optimizers, optimizers_of, require_loss, require_several, tensors_of
from .leaving import at_the_end, eager, evaluating, random_state
from .loops import trainer_loop
from .results import as_table
from .showing import rates_figure, section
from .watched_loss import Lookup, WatchedLoss, watch_loss

_PROBE = 2  # batches whose loss judges a trial
_FIRST = 8  # batches whose labels are counted, and among which those are sought whose loss is finite
_KEPT = 256  # batches of an iterator that cannot begin anew
_ENDLESS = 10**15  # steps of a run whose length is not given

_Loss: TypeAlias = Callable[[Any, Any], Tensor]


@dataclass(frozen=True)
class Rate:
    """A learning rate, and the interval that contains the true one with 80% probability."""

    estimate: float
    low: float
    high: float

    def __float__(self) -> float:
        return self.estimate

    def __repr__(self) -> str:
        return f"{self.estimate:.2g} (80% interval {self.low:.2g} to {self.high:.2g})"


@dataclass(frozen=True)
class Reason:
    """A measurement before the first step: `raised` if `value` lies beyond `threshold`, where it explains a failure."""

    alarm: str
    raised: bool
    place: str
    value: float
    threshold: float
    text: str
    advice: str

    def __repr__(self) -> str:
        return f"{'! ' if self.raised else '  '}{self.text}{'; ' + self.advice if self.raised else ''}"


@dataclass(frozen=True)
class Trial:
    """Some tens of steps at one rate, after a linear warm-up. `losses`: at `steps`, of the same batches, in evaluation mode."""

    learning_rate: float
    warm_up: int
    seed: int
    outcome: str
    reason: str
    steps: list[int]
    losses: list[float]
    gradients: int
    seconds: float


@dataclass(frozen=True)
class Gain:
    """Nats per label, with an 80% interval."""

    nats: float
    low: float
    high: float


@dataclass(frozen=True)
class Recommendation:
    """The rate and the steps of warm-up to use, and what these gain in nats per label; None where trials did not tell."""

    learning_rate: float
    warm_up: int
    tried: bool = True  # whether a trial carries it; otherwise an estimate
    # Nats by which such rates ended above the best one, on average and at most in nine of ten runs, and below the planned one.
    loss_above_best: float | None = None
    most_loss_above_best: float | None = None
    gain: Gain | None = None
    gain_of_warm_up: Gain | None = None  # of 200 steps, where the planned rate trains without

    def __repr__(self) -> str:
        return f"learning rate {self.learning_rate:.2g}, warm-up {self.warm_up} steps{'' if self.tried else ', untried'}"


@dataclass(frozen=True)
class Cost:
    """Gradients that were computed, measurements before training included, and the time that all took."""

    gradients: int
    seconds: float

    def __repr__(self) -> str:
        return f"{self.gradients:,} gradients, {self.seconds:.3g} s"


@dataclass(frozen=True, repr=False)
class CheckResult:
    """The keys of `plumb check --json` (docs/check.md). `verdict`: "trains"; "other_rate": not at the planned rate;
    "needs_warm_up": at that rate only after a warm-up; "cannot": at none that was tried; "unknown": the budget is too small.
    Rates are those of the parameter group with the largest one. `exit_status`: 0: trains; 4: unknown; 3: otherwise.
    True if it trains. `lines`: what else is printed, as pairs of name and text."""

    verdict: str
    checked: str
    answer: str
    lines: list[tuple[str, str]]
    exit_status: int
    planned_rate: float
    planned_warm_up: int
    planned_steps: int | None
    tried_warm_up: int
    largest_stable_rate: Rate | None
    largest_stable_rate_without_warm_up: Rate | None
    critical_rate: float | None
    recommended: Recommendation | None
    shortest_warm_up: int | None
    first_loss: float
    reference_loss: float | None
    cost: Cost
    planned_seconds: float | None
    reasons: list[Reason]
    trials: list[Trial]

    def __bool__(self) -> bool:
        return self.verdict == "trains"

    def _rows(self) -> list[tuple[str, ...]]:
        return [("learning rate", "warm-up", "outcome", "why"), *(
            (f"{trial.learning_rate:.2g}", str(trial.warm_up or ""), trial.outcome, trial.reason) for trial in self.trials)]

    def __repr__(self) -> str:
        raised = [repr(reason) for reason in self.reasons if reason.raised]
        trials = as_table(self._rows()) if self.trials else []
        return "\n".join([self.checked, self.answer, *as_table(self.lines), *raised, *trials])

    def _repr_html_(self) -> str:
        notes = [self.checked, *(f"{name}: {text}" for name, text in self.lines)]
        notes += [repr(reason) for reason in self.reasons if reason.raised]
        return section(f"Will it train? {self.answer}", self._rows() if self.trials else (), rates_figure(self), notes)


def check(model: Any, optimizer: Optimizers | None = None, loss: Callable[[Any, Any], Tensor] | None = None,
          batches: Iterable[Any] | Callable[[], Any] | None = None, *, module: Module | None = None, steps: int | None = None,
          warm_up: int = 0,
          budget: int | str | None = None, seed: int = 1, reference_loss: float | None = None, clip_norm: float | None = None,
          progress: Callable[[str, float], object] | None = None) -> CheckResult:
    """Tells before a run whether it will train, and what its largest stable learning rate is.

    model: a module, or alone transformers' Trainer, or Lightning's with module= and its loader or data module as batches=.
    optimizer: one, or a list of several; those that have train() and eval(), such as Schedule-Free's, are switched.
    loss: loss(model, batch), one number with its graph. It gets a copy of the model, and must compute with that.
    batches: a loader, a list of batches, or a function that makes one, of which 256 are made, as of an iterator that cannot
        begin anew the first 256 are kept.
    steps: of the planned run, if known. warm_up: the steps in which its rate rises linearly.
    budget: what to spend at most: a number of gradients, or as `plumb check --budget` a share of the steps ("5%") or a time
        ("2min"). Default: 5% of the steps, but at least 250 gradients.
    seed: of the first trial; the others count up. It decides on dropout and on the order of the batches.
    reference_loss: what a model reaches that knows only how frequent each label is, in nats per label, where the loss is a
        cross-entropy. Trials then have to come below it; without, they have to come below the loss before the first step.
        Default: from the labels of the first batches, if the loss is the mean of one torch.nn.functional.cross_entropy.
    clip_norm: of all gradients together, as torch.nn.utils.clip_grad_norm_.
    progress: called with (what is tried next, share of the budget).

    The planned rate is that of the optimizer's groups: `max_lr` or `initial_lr` where a scheduler has set them, otherwise
    `lr`; a trial at another one multiplies those of all groups alike. Trials begin with the model and optimizer as they are,
    copied, so that both are left as found, as are all random numbers. Hooks of the optimizer are not called.
    """
    if optimizer is None or loss is None or batches is None:
        if optimizer is not None or loss is not None or steps is not None or warm_up or clip_norm is not None:
            raise Error("a loop of one's own has model, optimizer, loss and batches, and a Trainer says the others itself\n"
                        "pass all four, or a Trainer alone, of Lightning with module= and its loader as batches=")
        with trainer_loop(model, module, batches) as loop:
            return check(**loop, budget=budget, seed=seed, reference_loss=reference_loss, progress=progress)
    require_loss(loss)
    require_several(batches)
    optimizers = optimizers_of(optimizer)
    groups = [group for one in optimizers for group in one.param_groups]
    if not all("lr" in group for group in groups):
        raise Error("the optimizer has no learning rate\nplumb.check needs one whose groups have an lr")
    rates = [float(group.get("max_lr", group.get("initial_lr", group["lr"]))) for group in groups]
    if any(isinstance(one, torch.optim.LBFGS) for one in optimizers):
        raise Error("LBFGS computes the loss several times in a step\n"
                    "plumb.check needs an optimizer whose step() has no closure")
    if not max(rates) > 0 or not math.isfinite(max(rates)):
        raise Error(f"the optimizer's learning rate is {max(rates):g}\nset the rate that the run is to have at its peak")
    if warm_up < 0 or (steps is not None and steps < 1):
        raise Error("a run has at least one step, and no fewer than 0 of warm-up")
    if budget is None:
        budget = "" if steps else "250g"
    elif not isinstance(budget, str):
        budget = f"{budget}g"
    elif "%" in budget and steps is None:
        raise Error(f"{budget} of how many steps?\npass steps=, or a number of gradients")
    own = {id(tensor) for tensor in model.parameters()}
    if not any(id(tensor) in own for group in groups for tensor in group["params"]):
        raise Error("the optimizer updates none of the model's parameters\npass the two that belong together")
    begin = time.perf_counter()
    with random_state(model, batches), _gradients_kept(model, groups), eager():
        run = _Run(model, optimizers, loss, _Batches(batches, seed), rates, reference_loss, clip_norm)
        if progress:
            progress("measurements before training", 0.0)
        run.look(steps)
        reference = run.reference
        planned: dict[str, Any] = dict(planned_rate=max(rates), planned_warm_up=warm_up, planned_steps=steps,
                                       first_loss=run.first, reference_loss=reference,
                                       checked=run.in_words(steps))
        found: dict[str, Any] = {
            "verdict": "cannot", "answer": f"does not train: {run.hopeless}", "exit_status": 3, "tried_warm_up": 0, "lines": [],
            "cost": {"gradients": run.gradients, "seconds": time.perf_counter() - begin}, "trials": []}
        found = found if run.hopeless else json.loads(_plumb.search_rates(
            budget=_plumb.Budget(budget, steps or _ENDLESS), spent=(run.gradients, time.perf_counter() - begin),
            peak=max(rates), warm_up=warm_up, steps=steps or _ENDLESS, seed=seed,
            reference=run.first if reference is None else min(run.first, reference),
            least_gain=0.03 * abs(run.first) if reference is None else 0.2,
            clear_gain=0.06 * abs(run.first) if reference is None else 0.0,
            critical_rate=run.critical_rate, momentum_gain=max(map(_momentum_gain, optimizers)),
            step_length=_step_length(optimizers), attempt=run.attempt, progress=progress))
    known: dict[str, Any] = {name: Rate(**found[name]) if name in found else None
                             for name in ("largest_stable_rate", "largest_stable_rate_without_warm_up")}
    known |= {name: found.get(name) for name in ("verdict", "answer", "exit_status", "tried_warm_up", "critical_rate",
                                                 "shortest_warm_up")}
    trials = [Trial(**{name: one[name] for name in Trial.__dataclass_fields__}) for one in found["trials"]]
    for trial in trials:
        trial.losses[:] = [math.nan if value is None else value for value in trial.losses]
    return CheckResult(
        **known, **planned, reasons=sorted(run.reasons, key=lambda reason: not reason.raised),
        recommended=_recommendation(found["recommended"]) if "recommended" in found else None,
        lines=[(name, text) for name, text in found["lines"]], cost=Cost(**found["cost"]),
        planned_seconds=found["planned_seconds"] if steps and trials else None, trials=trials)


def _recommendation(found: dict[str, Any]) -> Recommendation:
    known: dict[str, Any] = {name: found[name] for name in Recommendation.__dataclass_fields__ if name in found}
    known |= {name: Gain(**found[name]) for name in ("gain", "gain_of_warm_up") if name in found}
    return Recommendation(**known)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


class _Batches:
    """Batches in an order of their own for each seed."""

    def __init__(self, batches: Any, seed: int) -> None:
        if callable(batches) and not isinstance(batches, Iterable):
            make = batches
            batches = (make() for _ in range(_KEPT))
        self._given = list(itertools.islice(batches, _KEPT)) if isinstance(batches, Iterator) else batches
        _seed(seed)
        self.first = list(itertools.islice(iter(self._given), _FIRST))
        self.probe = self.first[:_PROBE]
        if not self.probe:
            raise Error("there is nothing to train on\npass at least one batch")

    def __iter__(self) -> Generator[tuple[int, Any], None, None]:
        """Numbers and batches: places in a list, or else in a pass."""
        ended = 0
        while ended < 2:  # one that was left at its end begins anew with the second pass
            ended += 1
            if isinstance(self._given, (list, tuple)):
                order = torch.randperm(len(self._given)).tolist()
                pairs: Iterable[tuple[int, Any]] = ((place, self._given[place]) for place in order)
            else:
                pairs = enumerate(self._given)
            for pair in pairs:
                ended = 0
                yield pair
        raise Error("the batches ended, and do not begin anew\npass a list of batches, or iter(batches)")


class _Fork:
    """A copy of model and optimizers, whose steps do not reach the original."""

    def __init__(self, model: Module, optimizers: list[torch.optim.Optimizer], loss: _Loss, clip_norm: float | None) -> None:
        memo: dict[int, Any] = {}
        try:
            self.model, self.optimizers = copy.deepcopy((model, optimizers), memo)
            for one, copied in zip(optimizers, self.optimizers):
                for name, value in vars(one).items():  # those of an optimizer's own, which PyTorch's copy leaves out
                    if name not in vars(copied) and not callable(value):
                        setattr(copied, name, copy.deepcopy(value, memo))
        except (RuntimeError, TypeError) as error:
            raise Error(f"model and optimizer cannot be copied: {error}\ncheck a new model before its first step") from error
        if not self.model.training:
            self.model.train()
        self.loss, self.clip_norm = loss, clip_norm
        self.parameters: list[Tensor] = [tensor for group in self.groups for tensor in group["params"]]
        self.switch("train")

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Those that they have now: load_state_dict makes new ones."""
        return [group for one in self.optimizers for group in one.param_groups]

    def switch(self, mode: str) -> None:
        """Of optimizers that train other weights than those to be judged, such as Schedule-Free's."""
        for one in self.optimizers:
            if callable(method := getattr(one, mode, None)):
                method()

    def zero_grad(self) -> None:
        for one in self.optimizers:
            one.zero_grad(set_to_none=True)

    def loss_of(self, batch: Any, gradient: bool = True) -> float:
        """The loss, whose gradient is added to those of the parameters."""
        with torch.enable_grad():  # without a gradient, too: a loss may differentiate within
            value = self.loss(self.model, batch)
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                raise Error("the loss is no single number\nreturn a tensor with its graph, such as a mean")
            if gradient and value.requires_grad:
                value.backward()  # type: ignore[no-untyped-call, unused-ignore]
        return float(value.detach())

    def step(self, rates: list[float]) -> None:
        for group, rate in zip(self.groups, rates):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_([tensor for tensor in self.parameters if tensor.grad is not None], self.clip_norm)
        for one in self.optimizers:
            one.step()
        self.zero_grad()


class _Run:
    """The planned run, and what is known of it before any trial."""

    def __init__(self, model: Module, optimizers: list[torch.optim.Optimizer], loss: _Loss, batches: _Batches, rates: list[float],
                 reference: float | None, clip_norm: float | None) -> None:
        self._model, self._batches, self.reference = model, batches, reference
        self._shares = [rate / max(rates) for rate in rates]
        self._peak = max(rates)
        self._optimizers, self._loss, self._clip_norm = optimizers, loss, clip_norm
        self._probed = batches.probe
        self.gradients, self.first = 0, math.nan
        self.critical_rate: float | None = None
        self.hopeless: str | None = None
        self.reasons: list[Reason] = []

    def in_words(self, steps: int | None) -> str:
        """The model, its size, the optimizers, the shape of a batch's first tensor, and the steps."""
        shapes = [tuple(one.shape) for one in tensors_of(self._batches.first[0])]
        parts = [type(self._model).__name__, f"{sum(p.numel() for p in self._model.parameters()) / 1e6:.2g}M parameters",
                 " and ".join(type(one).__name__ for one in self._optimizers),
                 *(f"batches of {' × '.join(map(str, shape))}" for shape in shapes[:1] if shape),
                 *([f"{steps:,} steps"] if steps else [])]
        return ", ".join(parts)

    def _fork(self) -> _Fork:
        return _Fork(self._model, self._optimizers, self._loss, self._clip_norm)

    def attempt(self, rate: float, warm_up: int, seed: int, most: int, seconds: float) -> str:
        """A trial, as the document of a check::Trial."""
        begin = time.perf_counter()
        fork, batches = self._fork(), iter(self._batches)
        _seed(seed)
        steps, losses, taken, diverged = [0], [self.first], 0, False
        outcome, clear, reason, plateau = "unknown", False, "ended before it could be told", False
        share: float | None = None
        while taken < most and not clear and not diverged:
            if time.perf_counter() - begin > seconds:
                if outcome != "trains":
                    outcome, reason, plateau = "unknown", "ended before it could be told", False
                break
            taken += 1
            now = rate * min(1.0, taken / warm_up) if warm_up else rate
            number, batch = next(batches)
            diverged = not math.isfinite(fork.loss_of(batch))
            if diverged and not math.isfinite(value := self._probe(self._fork(), [batch])):  # whatever the rate
                self._blame(number, batch, value)
                fork.zero_grad()
                diverged = False
            elif not diverged:
                fork.step([now * share for share in self._shares])
            if diverged or taken % _plumb.STEPS_BETWEEN_LOSSES == 0 or taken == most:
                steps.append(taken)
                losses.append(math.nan if diverged else self._judge(fork))
                diverged = diverged or not math.isfinite(losses[-1])
                outcome, clear, reason, plateau = _plumb.judge_trial(
                    steps=steps, losses=losses, warm_up=warm_up, most=most, reference=self.reference, diverged=diverged)
        batches.close()
        if plateau and (share := self._gradient_at_input(fork)) is not None:
            outcome, reason = _plumb.judge_plateau(reason, share)
        if rate == self._peak and not diverged:
            self._look_at_change(fork)
        return json.dumps(dict(
            learning_rate=rate, warm_up=warm_up, seed=seed, outcome=outcome, reason=reason, steps=steps, on_plateau=plateau,
            **({} if share is None else {"gradient_at_input": share}),
            losses=[value if math.isfinite(value) else None for value in losses], gradients=taken,
            seconds=time.perf_counter() - begin))

    def _blame(self, number: int, batch: Any, value: float) -> None:
        """Of a batch whose loss is not finite before training, either, which says nothing about a rate."""
        tensors = [one for one in tensors_of(batch) if one.numel()]
        why = ""
        if any(not one.is_floating_point() and bool((one == -100).all()) for one in tensors):
            why = ", of which all labels are ignored (-100),"
        elif not all(bool(one.isfinite().all()) for one in tensors):
            why = ", which has elements that are not finite,"
        places = [reason.place for reason in self.reasons if reason.alarm == "batch"]
        if len(places) < 3 and f"batch {number}" not in places:
            self._reason("batch", True, [f"batch {number}"], value, math.inf,
                         f"the loss of batch {number}{why} is {value} before training: trials leave it out, and a run would break",
                         "leave out such batches, or their part of the loss")

    def _judge(self, fork: _Fork) -> float:
        """The loss at the weights that the optimizers mean to be used: Schedule-Free's train others."""
        fork.switch("eval")
        loss = self._probe(fork, self._probed)
        fork.switch("train")
        return loss

    def _probe(self, fork: _Fork, batches: list[Any], gradient: bool = False) -> float:
        """The mean loss of batches in evaluation mode, with the same random numbers each time; batch norms use the statistics
        of the batch, as in training."""
        total = 0.0
        cudnn = torch.backends.cudnn  # differentiates no recurrent layer in evaluation mode
        recurrent = gradient and any(isinstance(module, torch.nn.RNNBase) for module in fork.model.modules())
        with evaluating(fork.model), cudnn.flags(
                enabled=cudnn.enabled and not recurrent, benchmark=cudnn.benchmark, deterministic=cudnn.deterministic,
                allow_tf32=cudnn.allow_tf32):
            for place, batch in enumerate(batches):
                _seed(place)
                total += fork.loss_of(batch, gradient) / len(batches)
        return total

    def _watched(self, fork: _Fork, batch: Any, changed: Lookup | None = None) -> tuple[WatchedLoss, list[Lookup]] | None:
        with evaluating(fork.model):
            _seed(0)
            return watch_loss(fork.model, lambda: fork.loss_of(batch, gradient=False), changed)

    def _watch(self, fork: _Fork) -> None:
        """What is known of the loss if it is a cross-entropy of classes: what the labels' frequencies give, and the alarms
        `initial_loss`, `causality` and `signal`."""
        seen, lookups = self._watched(fork, self._probed[0]) or (None, [])
        if seen is not None and self.reference is None and seen.mean and math.isclose(
                seen.value, self._probe(fork, self._probed[:1]), rel_tol=1e-3):
            self.reference = self._entropy_of_labels(fork)
        self._look_at_loss(seen)
        if seen is None:
            return
        following = [lookup for lookup in lookups if seen.ahead(lookup.tokens) == 1]
        if following:
            self._look_at_causality(fork, seen, following[0])
        if seen.states is not None:
            self._look_at_states(seen.head, seen.states.double(), bool(following))

    def _entropy_of_labels(self, fork: _Fork) -> float | None:
        """In nats, of the first batches' labels, corrected for labels that these are too few to have (Miller and Madow)."""
        seen = [self._watched(fork, batch) for batch in self._batches.first]
        counts = torch.bincount(torch.cat([one[0].labels[one[0].counted].cpu() for one in seen if one is not None]))
        counts = counts[counts > 0]
        shares = counts.double() / counts.sum()
        return float(-(shares * shares.log()).sum() + (len(counts) - 1) / (2 * counts.sum())) if len(counts) > 1 else None

    def _look_at_causality(self, fork: _Fork, seen: WatchedLoss, tokens: Lookup) -> None:
        """As the alarm `causality`: another last token must not change what is predicted before it."""
        changed = self._watched(fork, self._probed[0], tokens)
        if changed is None:
            return
        count, length = tokens.tokens.shape
        before, after = (one.scores.double().view(count, -1, one.scores.shape[-1])[:, :length - 1] for one in (seen, changed[0]))
        size = float(before.abs().max())
        if not size:  # a last layer that begins at 0
            return
        change = float((after - before).abs().max()) / size
        self._reason("causality", not change <= _plumb.CAUSALITY, [seen.head], change, _plumb.CAUSALITY,
                     f"another last token changes the predictions before it by {change:.2g} of their size",
                     "a causal mask: the model sees the tokens that it is to predict, so its loss means nothing")

    def _look_at_states(self, head: str, states: Tensor, of_tokens: bool) -> None:
        """As the alarm `signal`, of what the last layer reads. A norm makes it the same for each token before training."""
        sizes = states.square().mean(-1).sqrt()
        size, least, most = float(sizes.square().mean().sqrt()), _plumb.SMALLEST_STATES, _plumb.LARGEST_STATES
        self._reason("signal", not least <= size < most, [head], size, least if size < least else most,
                     f"{head} reads activations of RMS {size:.3g}; a norm at the end makes it 1", "a norm at the end of the stack")
        norms = [module for module in self._model.modules() if "norm" in type(module).__name__.lower()]
        scales = [scale for module in norms if isinstance(scale := getattr(module, "weight", None), Tensor)]
        if of_tokens and len(norms) > 1 and all(bool((scale == scale.flatten()[0]).all()) for scale in scales):
            spread, most = float(sizes.std() / sizes.mean()), 0.1 / math.sqrt(states.shape[-1])  # of random vectors: 0.7/√d
            self._reason("signal", not spread < most, [head], spread, most,
                         f"the RMS of what {head} reads, {size:.3g}, differs by {100 * spread:.2g}% between tokens: of "
                         f"{len(norms)} norms none comes last", "a norm at the end of the stack")

    def _gradient_at_input(self, fork: _Fork) -> float | None:
        """Of the layers of the largest stack, the norm of the first one's gradient over that of the last one's."""
        stacks = [module for module in fork.model.modules() if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential))
                  and len(module) > 1 and len({type(layer) for layer in module}) == 1]
        if not stacks:
            return None
        stack = max(stacks, key=lambda layers: sum(tensor.numel() for tensor in layers.parameters()))
        self._probe(fork, self._probed, gradient=True)
        first, last = (sum(float(tensor.grad.double().square().sum()) for tensor in layer.parameters() if tensor.grad is not None)
                       for layer in (stack[0], stack[-1]))
        return math.sqrt(first / last) if last else None

    def look(self, steps: int | None) -> None:
        """The loss before the first step, the alarms, and the critical rate of the first step."""
        fork = self._fork()
        self.first = self._judge(fork)
        if not math.isfinite(self.first):  # because of a batch, or of the model
            some = [(number, batch, self._probe(fork, [batch])) for number, batch in enumerate(self._batches.first)]
            self._probed = [batch for _, batch, loss in some if math.isfinite(loss)][:_PROBE] or self._probed
            self.first = self._judge(fork)
            for number, batch, loss in some if math.isfinite(self.first) else ():
                if not math.isfinite(loss):
                    self._blame(number, batch, loss)
        self._watch(fork)
        here = self._probe(fork, self._probed[:1], gradient=True)
        self.gradients = _plumb.MEASUREMENTS
        names = {id(copied): name for name, copied in fork.model.named_parameters()}
        trained = {id(tensor) for tensor in fork.parameters if tensor.requires_grad}
        frozen = [name for name, tensor in fork.model.named_parameters() if id(tensor) not in trained]
        if not trained:
            self.hopeless = "every parameter that the optimizer has is frozen"
        elif all(tensor.grad is None for tensor in fork.parameters):
            if any(tensor.grad is not None for tensor in self._model.parameters()):
                raise Error("the loss is computed from another model than the one that it gets\n"
                            "write it as a function of model and batch that uses its first argument")
            self.hopeless = "no gradient of the loss reaches a parameter that the optimizer has"
        if not math.isfinite(self.first):
            self.hopeless = f"the loss is {self.first} before the first step"
        self._reason("frozen", False, frozen, len(frozen) / max(1, len(names)), 0,
                     f"{len(frozen)} of {len(names)} parameters are frozen, or unknown to the optimizer", "")
        if self.hopeless:
            self.reasons.append(Reason("loss", True, "", self.first, math.inf, self.hopeless, "nothing can be learned from it"))
            return
        before = [tensor.detach().clone() for tensor in fork.parameters]
        slopes = [tensor.grad.clone() if tensor.grad is not None else None for tensor in fork.parameters]
        zero = [tensor for tensor in fork.parameters
                if id(tensor) in trained and id(tensor) in names and (tensor.grad is None or not tensor.grad.any())]
        fork.step([self._peak * share for share in self._shares])
        moved = [tensor.detach() - old for tensor, old in zip(fork.parameters, before)]
        self._look_at_updates(fork, names, before, moved, steps)
        self._look_at_epsilon(fork, slopes)

        def rise(rate: float) -> float:
            with torch.no_grad():
                for tensor, old, step in zip(fork.parameters, before, moved):
                    tensor.copy_(old + step * (rate / self._peak))
            return self._probe(fork, self._probed[:1]) - here  # of the same batch as the step

        slope = -sum(float((g.double() * m.double()).sum()) for g, m in zip(slopes, moved) if g is not None) / self._peak
        self.critical_rate = _plumb.critical_rate(slope, rise, self._peak)
        # A matrix behind one that begins at 0 has no gradient until steps have moved that one.
        rise((self.critical_rate or self._peak) / 10)
        for _ in range(2):
            if zero:
                self._probe(fork, self._probed[:1], gradient=True)
                zero = [tensor for tensor in zero if tensor.grad is None or not tensor.grad.any()]
                fork.step([(self.critical_rate or self._peak) / 10 * share for share in self._shares])
        where = [names[id(tensor)] for tensor in zero]
        text = f"{len(zero)} of {len(trained)} parameters have no gradient"
        self._reason("gradients", bool(zero), where, len(zero), 0, text + (f", the first of them {where[0]}" if where else ""),
                     "connect them to the loss: something between them and the loss passes no gradient")

    def _look_at_loss(self, seen: WatchedLoss | None) -> None:
        if self.reference is not None:
            uniform = self.reference if seen is None else max(self.reference, math.log(seen.scores.shape[-1]))
            most = uniform + _plumb.INITIAL_LOSS_MARGIN
            self._reason("initial_loss", not self.first <= most, [], self.first, most,
                         f"the loss before training is {self.first:.3g} nats; a uniform guess has {uniform:.3g}, and the labels' "
                         f"frequencies alone {self.reference:.3g}", "a smaller initialization of the output layer, or a norm "
                         "before it")

    def _look_at_updates(self, fork: _Fork, names: dict[int, str], before: list[Tensor], moved: list[Tensor],
                         steps: int | None) -> None:
        """As the alarm `updates`: of matrices, relative to their norms."""
        sizes = [(float(step.double().norm() / old.double().norm()), names[id(tensor)])
                 for tensor, old, step in zip(fork.parameters, before, moved)
                 if old.dim() >= 2 and old.any() and id(tensor) in names]
        if not sizes:
            return
        size, place = max(sizes)
        largest, smallest = _plumb.LARGEST_UPDATE, _plumb.SMALLEST_UPDATES
        self._reason("updates", not size < largest, [place], size, largest,
                     f"a first step at {self._peak:.3g} changes {place} by {100 * size:.3g}% of its norm, more than any other "
                     "matrix", "a smaller learning rate, or a larger initialization")
        if steps is not None:
            self._reason("updates", not size * steps > smallest, [place], size * steps, smallest,
                         f"{steps} steps at {self._peak:.3g} change every matrix by at most {100 * size * steps:.3g}% of its "
                         "norm", "a larger learning rate, or more steps")

    def _look_at_change(self, fork: _Fork) -> None:
        """Withdraws that all steps change nothing, where a trial has: some optimizers' first step is smaller than others."""
        smallest = _plumb.SMALLEST_UPDATES
        own = [tensor.detach() for one in self._optimizers for group in one.param_groups for tensor in group["params"]]
        if any(float((new.detach() - old).norm()) > smallest * float(old.norm()) > 0 for new, old in zip(fork.parameters, own)):
            self.reasons = [one for one in self.reasons if not one.raised or (one.alarm, one.threshold) != ("updates", smallest)]

    def _look_at_epsilon(self, fork: _Fork, slopes: list[Tensor | None]) -> None:
        """As the alarm `epsilon`, for Adam and those like it."""
        below = every = 0
        for optimizer, group in ((one, group) for one in fork.optimizers for group in one.param_groups):
            for tensor in group["params"]:
                state = optimizer.state.get(tensor, {})
                if "exp_avg_sq" in state and "betas" in group and "step" in state and "eps" in group:
                    root = (state["exp_avg_sq"].double() / (1 - group["betas"][1] ** float(state["step"]))).sqrt()
                    moves = root > 0
                    below, every = below + int((moves & (root < group["eps"])).sum()), every + int(moves.sum())
        if every:
            norm = math.sqrt(sum(float(g.double().square().sum()) for g in slopes if g is not None))
            size = norm / math.sqrt(sum(g.numel() for g in slopes if g is not None))
            most = _plumb.MOST_BELOW_EPSILON
            self._reason("epsilon", below / every > most, [], below / every, most,
                         f"ε is larger than the gradient of {100 * below / every:.3g}% of all elements, whose root mean square "
                         f"is {size:.2g}", "a smaller eps, or a loss that is not scaled down")

    def _reason(self, alarm: str, raised: bool, places: list[str], value: float, threshold: float, text: str,
                advice: str) -> None:
        self.reasons.append(Reason(alarm, raised, places[0] if places else "", value, threshold, text, advice))


def _momentum_gain(optimizer: torch.optim.Optimizer) -> float:
    """By how much the steps of a constant gradient grow."""
    group = optimizer.param_groups[0]
    momentum = group.get("momentum", 0.0) if isinstance(optimizer, torch.optim.SGD) else 0.0
    return (1 - group["dampening"]) / (1 - momentum) if momentum else 1.0


def _step_length(optimizers: list[torch.optim.Optimizer]) -> _plumb.StepLength:
    """What the length of all their steps follows beside the learning rate."""
    if all(isinstance(one, torch.optim.SGD) for one in optimizers):
        return _plumb.StepLength.gradient
    by_weights = all(type(one).__name__ in ("Adafactor", "Lamb", "LAMB") and one.param_groups[0].get("scale_parameter", True)
                     for one in optimizers)
    return _plumb.StepLength.weights if by_weights else _plumb.StepLength.sign


@contextlib.contextmanager
def _gradients_kept(model: Module, groups: list[dict[str, Any]]) -> Iterator[None]:
    """A loss may be computed from the original by mistake."""
    tensors = {id(tensor): tensor for tensor in (*model.parameters(), *(one for group in groups for one in group["params"]))}
    with at_the_end([("a gradient", partial(setattr, tensor, "grad", tensor.grad)) for tensor in tensors.values()]):
        for tensor in tensors.values():
            tensor.grad = None
        yield
