"""Initializing modules anew, and leaving them as they were found."""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ._plumb import Error


@contextlib.contextmanager
def random_state(model: torch.nn.Module, loader: Any = None) -> Iterator[None]:
    """Restores the random numbers of PyTorch, on all devices in use, of NumPy, of Python, and of a loader's generators."""
    tensors = [*model.parameters(), *model.buffers()]
    devices = sorted({tensor.device.index for tensor in tensors if tensor.device.type == "cuda"})
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        devices = list(range(torch.cuda.device_count()))
    holders = [loader, *(getattr(loader, name, None) for name in ("sampler", "batch_sampler", "dataset"))]
    holders.append(getattr(holders[2], "sampler", None))
    found = (getattr(holder, "generator", None) for holder in holders)
    generators = list({id(one): one for one in found if isinstance(one, torch.Generator)}.values())
    states = [generator.get_state() for generator in generators]
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        for generator, state in zip(generators, states):
            generator.set_state(state)


@contextlib.contextmanager
def as_found(model: torch.nn.Module, *, weights: bool = True) -> Iterator[None]:
    """Restores parameters (with `weights`), buffers, modes and random numbers, on error too. Tensors stay the same
    objects, and those that have not changed are not written, so that graphs made before can still be differentiated."""
    modules = list(model.modules())
    modes = [module.training for module in modules]
    kept: list[tuple[dict[str, Any], dict[str, Any], dict[str, torch.Tensor]]] = []
    for module in modules:
        for held in (module._parameters, module._buffers) if weights else (module._buffers,):
            values = {key: tensor.detach().clone() for key, tensor in held.items() if tensor is not None}
            kept.append((held, dict(held), values))
    try:
        with random_state(model):
            yield
    finally:
        for module, training in zip(modules, modes):
            module.training = training
        with torch.no_grad():
            for held, objects, values in kept:
                held.clear()
                held.update(objects)
                for key, value in values.items():
                    # NaN does not equal itself.
                    if not torch.equal(objects[key].nan_to_num(), value.nan_to_num()) or objects[key].isnan().any():
                        objects[key].copy_(value)


def reset_of(model: torch.nn.Module) -> Callable[[torch.nn.Module, int], None]:
    """reset(model, seed), by the modules' own methods: `reset_parameters()`, inner modules first, and of models of
    transformers `init_weights()`."""
    without: list[str] = []

    def search(module: torch.nn.Module, name: str, covered: bool) -> None:
        covered = covered or _initializer(module) is not None
        without.extend(f"{name}{key}" for key, tensor in module._parameters.items() if tensor is not None and not covered)
        for key, child in module.named_children():
            search(child, f"{name}{key}.", covered)

    search(model, "", False)
    if without or next(model.parameters(), None) is None:
        some = ", ".join(without[:3]) + (f" and {len(without) - 3} more" if len(without) > 3 else "")
        what = f"no reset_parameters() initializes {some}" if without else "no module has reset_parameters() or parameters"
        raise Error(f"{what}\npass reset=, a function of model and seed, or seeds=1 to measure the model as it stands")

    def initialize(module: torch.nn.Module) -> None:
        method = _initializer(module)
        if method is None or method.__name__ != "init_weights":  # which does so itself
            for child in module.children():
                initialize(child)
        elif method is not None:
            # Marked modules and parameters are left as they are.
            for marked in (*module.modules(), *module.parameters()):
                marked.__dict__.pop("_is_hf_initialized", None)
        if method is not None:
            method()

    def reset(model: torch.nn.Module, seed: int) -> None:
        torch.manual_seed(seed)
        initialize(model)

    return reset


def _initializer(module: torch.nn.Module) -> Any:
    if callable(getattr(module, "_init_weights", None)) and callable(getattr(module, "init_weights", None)):
        return module.init_weights
    for name in ("reset_parameters", "_reset_parameters"):  # the latter: of nn.Transformer and nn.MultiheadAttention
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    return None
