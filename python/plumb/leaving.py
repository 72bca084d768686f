"""Initializing modules anew, and leaving them as they were found."""

import contextlib
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from ._plumb import Error
from .results import some


@contextlib.contextmanager
def at_the_end(steps: list[tuple[str, Callable[[], object]]]) -> Iterator[None]:
    """Takes all steps at the end, whichever fail: an Error, or a note on what was raised before, an interruption included."""
    raised: BaseException | None = None
    try:
        yield
    except BaseException as error:
        raised = error
    for what, step in steps:
        try:
            step()
        except BaseException as error:
            text = f"{what} could not be restored: {error}"
            if raised is None:
                raised = Error(text) if isinstance(error, Exception) else error
            else:
                raised.add_note(text)
    try:
        if raised is not None:
            raise raised
    finally:
        del raised  # which would keep the frames of its traceback, and all that they hold


@contextlib.contextmanager
def random_state(model: torch.nn.Module, loader: Any = None) -> Iterator[None]:
    """Restores the random numbers of PyTorch, on all devices in use, of NumPy, of Python, and of a loader: its
    generators, and what it, its sampler, its data set and loaders within it count."""
    tensors = [*model.parameters(), *model.buffers()]
    devices = sorted({tensor.device.index for tensor in tensors if tensor.device.type == "cuda"})
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call, unused-ignore]
        devices = list(range(torch.cuda.device_count()))
    of_loader, loaders = _states(loader)
    states: list[Callable[[], object]] = [
        partial(random.setstate, random.getstate()), partial(np.random.set_state, np.random.get_state()),
        partial(torch.set_rng_state, torch.get_rng_state()),
        *(partial(torch.cuda.set_rng_state, torch.cuda.get_rng_state(device), device) for device in devices),
        *of_loader]
    for one in loaders:  # persistent workers are those of their owner alone
        vars(one).update(_iterator=None, persistent_workers=False)
    with at_the_end([("a state of random numbers", state) for state in states]):
        yield


def _states(loader: Any) -> tuple[list[Callable[[], object]], list[Any]]:
    """What puts back the state of a loader: of generators, and of attributes of samplers, data sets and loaders within it; and
    the loaders of PyTorch among them."""
    left = (torch.Tensor, torch.nn.Module, torch.optim.Optimizer, Iterator, type, types.ModuleType)
    states: dict[int, Callable[[], object]] = {}
    reached = [loader]
    for one in reached:
        if isinstance(one, (list, tuple)) and len(one) <= 64:
            reached += one
        elif isinstance(one, torch.Generator):
            states[id(one)] = partial(one.set_state, one.get_state())
        elif isinstance(one, np.random.RandomState):
            states[id(one)] = partial(one.set_state, one.get_state())
        elif isinstance(one, np.random.Generator):
            states[id(one)] = partial(setattr, one.bit_generator, "state", one.bit_generator.state)
        elif isinstance(one, random.Random):
            states[id(one)] = partial(one.setstate, one.getstate())
        elif (id(one) not in states and hasattr(one, "__dict__") and not callable(one) and not isinstance(one, left)
              and type(one).__module__.partition(".")[0] not in ("threading", "queue", "multiprocessing", "logging")):
            states[id(one)] = partial(vars(one).update, dict(vars(one)))
            reached += vars(one).values() if len(reached) < 1000 else ()
    return list(states.values()), [one for one in reached if isinstance(one, torch.utils.data.DataLoader)]


@contextlib.contextmanager
def as_found(model: torch.nn.Module, *, weights: bool = True) -> Iterator[None]:
    """Restores parameters (with `weights`), buffers, modes and random numbers, on error too. Tensors stay the same
    objects, and those that have not changed are not written, so that graphs made before can still be differentiated."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise Error(f"{name} is not initialized yet\ncall the model once before it is measured")
    steps: list[tuple[str, Callable[[], object]]] = []
    for name, module in model.named_modules():
        steps.append((f"the mode of {name or 'the model'}", partial(setattr, module, "training", module.training)))
        for held in (module._parameters, module._buffers) if weights else (module._buffers,):
            steps += [(f"the tensors of {name or 'the model'}", step) for step in (held.clear, partial(held.update, dict(held)))]
            for key, value in held.items():
                if value is not None:
                    memory = value.detach()
                    steps.append((f"{name}.{key}" if name else key, partial(_put_back, value, memory, memory.clone())))
    with at_the_end(steps), random_state(model):
        yield


def evaluate(model: torch.nn.Module) -> None:
    """Switches to evaluation mode all but the batch norms that are in training mode: what is trained is the function with the
    statistics of its batch, and running averages settle far later than the weights."""
    trained = [module for module in model.modules() if module.training and module._buffers.get("running_mean") is not None]
    model.eval()
    for module in trained:
        module.training = True


@contextlib.contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """In evaluation mode; leaves buffers, modes and random numbers as found."""
    with as_found(model, weights=False):
        evaluate(model)
        yield


def eager() -> contextlib.AbstractContextManager[object]:
    """Within it, what torch.compile has made computes as if it were not compiled: hooks see every module, copies are not compiled
    anew, and there are second derivatives. PyTorch before 2.6 has no such switch."""
    switch: Any = getattr(torch.compiler, "set_stance", None)
    compiled = switch is not None and "torch._dynamo" in sys.modules  # whose import takes seconds
    return switch("force_eager") if compiled else contextlib.nullcontext()


@contextlib.contextmanager
def hooked(modules: Iterable[tuple[str, torch.nn.Module]], begun: Callable[[str, Any, Any], Any],
           finished: Callable[[str, Any], Any]) -> Iterator[None]:
    """Calls begun(name, arguments, keywords) and finished(name, output) for each call of these modules, as forward hooks.
    PyTorch's encoder computes whole layers at once in evaluation, without calling its modules, unless told otherwise."""
    enabled, handles = torch.backends.mha.get_fastpath_enabled(), []
    torch.backends.mha.set_fastpath_enabled(False)
    for name, module in modules:
        handles.append(module.register_forward_pre_hook(lambda m, i, k, n=name: begun(n, i, k), with_kwargs=True))
        handles.append(module.register_forward_hook(lambda m, i, o, n=name: finished(n, o)))
    try:
        with eager():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)
        for handle in handles:
            handle.remove()


def _put_back(tensor: torch.Tensor, memory: torch.Tensor, value: torch.Tensor) -> None:
    """Written only if it has changed, as autograd would know of it."""
    tensor.data = memory  # if something else has been put in its place
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        try:
            same = torch.equal(tensor, value) or (
                tensor.is_floating_point() and torch.allclose(tensor, value, 0, 0, equal_nan=True))
        except Exception:  # sparse, nested and others, which cannot be compared: unknown to autograd
            tensor.data.copy_(value)
        else:
            if not same:
                tensor.copy_(value)


def reset_of(model: torch.nn.Module) -> Callable[[torch.nn.Module, int], None]:
    """reset(model, seed), by the modules' own methods: `reset_parameters()`, inner modules first, of models of transformers
    `init_weights()`, and of others `_init_weights` applied to each module, which leaves parameters that are constant, such as
    those of a norm."""
    without: list[str] = []
    own = callable(getattr(model, "_init_weights", None))

    def search(module: torch.nn.Module, name: str, covered: bool) -> None:
        covered = covered or _initializer(module) is not None
        without.extend(f"{name}{key}" for key, tensor in module._parameters.items()
                       if tensor is not None and not covered and not (own and bool((tensor == tensor.reshape(-1)[:1]).all())))
        for key, child in module.named_children():
            search(child, f"{name}{key}.", covered)

    search(model, "", False)
    if without or next(model.parameters(), None) is None:
        what = f"no reset_parameters() initializes {some(without)}" if without else "no module has reset_parameters() or parameters"
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
        elif callable(apply := getattr(module, "_init_weights", None)):
            module.apply(apply)

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
