"""What a Trainer or a loop is about to do, without a step of it: the arguments of `check`, and the first batches."""

import contextlib
import copy
import inspect
import itertools
import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as tree

from ._plumb import Error
from .arguments import optimizers_of


@contextlib.contextmanager
def trainer_loop(trainer: Any, module: Any = None, batches: Any = None) -> Iterator[dict[str, Any]]:
    """The arguments of `check` for transformers' Trainer, or Lightning's with its module, which keep their attributes.
    `batches`, of Lightning: a loader or a data module. Throws Error for anything else."""
    lightning = hasattr(trainer, "precision_plugin")
    holder = (module or trainer.lightning_module) if lightning else trainer
    if holder is None or not lightning and not hasattr(trainer, "get_train_dataloader"):
        raise Error(f"there is no Trainer of transformers, or of Lightning with its module, but a {type(trainer).__name__}\n"
                    "pass such a Trainer, of Lightning with module and loader; or of a loop of one's own, each by its name,\n"
                    "model, optimizer, loss and batches, which plumb.preflight calls loader")
    before = dict(vars(holder))
    try:
        yield _of_lightning(trainer, holder, batches) if lightning else _of_transformers(trainer)
    finally:
        vars(holder).clear()
        vars(holder).update(before)


def _of_transformers(trainer: Any) -> dict[str, Any]:
    arguments, known = trainer.args, trainer.accelerator._dataloaders[:]
    batches = trainer.get_train_dataloader()
    trainer.accelerator._dataloaders[:] = known
    steps = _steps(batches, arguments.max_steps, arguments.num_train_epochs, arguments.gradient_accumulation_steps)
    optimizer = trainer.optimizer or trainer.create_optimizer()
    scheduler = trainer.lr_scheduler or trainer.create_scheduler(steps, optimizer=copy.deepcopy(optimizer))

    def loss(model: Any, batch: Any) -> Any:
        with trainer.compute_loss_context_manager():
            return trainer.compute_loss(model, trainer._prepare_inputs(dict(batch)))

    return plain_loop(optimizer, scheduler, steps, None, model=trainer.model, loss=loss, batches=batches,
                      clip_norm=arguments.max_grad_norm or None)


def _of_lightning(trainer: Any, module: Any, batches: Any) -> dict[str, Any]:
    if batches is None or hasattr(batches, "train_dataloader"):
        source = copy.copy(module if batches is None else batches)
        source.prepare_data()
        source.setup("fit")
        batches = source.train_dataloader()
    steps = _steps(batches, trainer.max_steps, trainer.max_epochs or 1000, trainer.accumulate_grad_batches)
    module.trainer = copy.copy(trainer)  # which copies of the module share
    module.trainer.__class__ = type("Trainer", (type(trainer),), {
        "estimated_stepping_batches": steps, "__deepcopy__": lambda self, memo: self})
    module.log = module.log_dict = lambda *values, **options: None
    made = module.configure_optimizers()
    made = made[0] if isinstance(made, list) and len(made) == 1 else made
    if isinstance(made, tuple):
        made = {"optimizer": made[0][0] if len(made[0]) == 1 else None, "lr_scheduler": next(iter(made[1]), None)}
    made = made if isinstance(made, dict) else {"optimizer": made}
    if not module.automatic_optimization or not isinstance(made["optimizer"], torch.optim.Optimizer):
        raise Error("the module optimizes by hand, or has not one optimizer\npass model, optimizer, loss and batches")
    scheduler = made.get("lr_scheduler")
    scheduler = scheduler if isinstance(scheduler, dict) else {"scheduler": scheduler}
    numbered = (0,) if "batch_idx" in inspect.signature(module.training_step).parameters else ()

    def loss(model: Any, batch: Any) -> Any:
        batch = model.on_after_batch_transfer(model.transfer_batch_to_device(batch, model.device, 0), 0)
        with trainer.precision_plugin.forward_context():
            value = model.training_step(batch, *numbered)
        return value if isinstance(value, torch.Tensor) else value["loss"]

    loop = plain_loop(made["optimizer"], scheduler["scheduler"], steps, None, model=module, loss=loss, batches=batches,
                      clip_norm=trainer.gradient_clip_val or None)
    loop["warm_up"] *= 1 if scheduler.get("interval") == "step" else _steps(batches, 0, 1, 1)
    return loop


def _steps(batches: Any, most: int, epochs: float, accumulated: int) -> int:
    """The steps of a run: `most` if that is positive, otherwise those of `epochs`."""
    return most if most > 0 else max(1, math.ceil(epochs * math.ceil(len(batches) / accumulated)))


def plain_loop(optimizer: Any, scheduler: Any, steps: int | None, warm_up: int | None, **others: Any) -> dict[str, Any]:
    """The arguments of `check`. Optimizer and scheduler may be accelerate's."""
    optimizer, *others_of_loop = optimizers_of(optimizer)
    if others_of_loop:
        raise Error("plumb.preflight looks at runs of one optimizer\nof several, call plumb.check, which takes a list")
    scheduler = copy.deepcopy(getattr(scheduler, "scheduler", scheduler))
    rates: list[list[float]] = []
    with warnings.catch_warnings(), contextlib.suppress(TypeError, ValueError):  # it asks for a loss, or has ended
        warnings.simplefilter("ignore")  # the optimizer takes no steps
        while scheduler and len(rates) < (steps or 1000):
            rates.append([float(group["lr"]) for group in scheduler.optimizer.param_groups])
            scheduler.step()
    if rates:
        peak = max(rates, key=max)
        rising = next(step for step, rate in enumerate(rates) if max(rate) >= 0.999 * max(peak))
        warm_up = (rising if max(rates[0]) < 0.5 * max(peak) else 0) if warm_up is None else warm_up
        groups = [{**group, "initial_lr": rate, "max_lr": rate} for group, rate in zip(optimizer.param_groups, peak)]
        planned = copy.copy(optimizer)
        vars(planned).update({**vars(optimizer), "param_groups": groups})
        optimizer = planned
    return {"optimizer": optimizer, "steps": steps, "warm_up": warm_up or 0, **others}


def draw(batches: Any, count: int) -> list[Any]:
    """The first batches, without a trace in the loader: samplers and generators are copied, workers not started."""
    device, batches = getattr(batches, "device", None), getattr(batches, "base_dataloader", batches)  # accelerate's
    if isinstance(batches, torch.utils.data.DataLoader):
        loader, data, collate = copy.copy(batches), copy.copy(batches.dataset), copy.copy(batches.collate_fn)
        for holder in (data, collate):
            for name, value in getattr(holder, "__dict__", {}).items():
                if isinstance(value, (random.Random, np.random.Generator, np.random.RandomState, torch.Generator)):
                    setattr(holder, name, copy.deepcopy(value))
        own = copy.deepcopy({name: getattr(batches, name) for name in ("sampler", "batch_sampler", "generator")},
                            {id(batches.dataset): data})  # at once: they share their generator
        vars(loader).update(own, dataset=data, collate_fn=collate, num_workers=0, timeout=0, persistent_workers=False,
                            _iterator=None)
        batches = loader
    elif not hasattr(batches, "__iter__"):
        batches = [batches() for _ in range(count)]
    elif iter(batches) is batches:
        raise Error("batches taken from an iterator would be missing in training\npass the loader, or a list")
    drawn = copy.deepcopy(list(itertools.islice(batches, count)))
    if not drawn:
        raise Error("there is nothing to train on\npass at least one batch")
    if device is not None:
        drawn = tree.tree_map(lambda leaf: leaf.to(device) if hasattr(leaf, "to") else leaf, drawn)
    return drawn
