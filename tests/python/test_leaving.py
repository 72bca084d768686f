"""A measurement leaves modules, their tensors and random numbers as it found them, whatever happens within."""

import random
import weakref

import pytest
import torch
from torch import nn

import plumb
from plumb.leaving import as_found

VALUES = {
    "float32": torch.ones(3), "NaN": torch.tensor([1.0, float("nan")]), "scalar": torch.tensor(1.0), "empty": torch.empty(0),
    "integers": torch.ones(3, dtype=torch.int64), "booleans": torch.ones(3, dtype=torch.bool),
    "complex": torch.ones(2, dtype=torch.complex64), "bfloat16": torch.ones(2, dtype=torch.bfloat16),
    "float8": torch.ones(2).to(torch.float8_e4m3fn), "sparse": torch.eye(2).to_sparse(), "rows": torch.eye(2).to_sparse_csr(),
    "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "meta": torch.empty(3, device="meta"),
}


def bits(tensor):
    if tensor.is_nested:
        return [bits(one) for one in tensor.unbind()]
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    return None if tensor.is_meta else tensor.reshape(-1).view(torch.uint8).tolist()


def holding(value):
    """A module with the value among parameters, so that something follows it."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Module(), nn.Linear(2, 2))
    model[1].register_buffer("value", value.clone())
    return model


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_every_kind_of_tensor_is_restored_and_the_exception_stays(value):
    model = holding(value)
    before, state = {name: bits(tensor) for name, tensor in model.state_dict().items()}, random.getstate()
    with pytest.raises(LookupError, match="mine") as raised, as_found(model), torch.no_grad():
        random.random()
        model.eval()
        model[0].bias.add_(1)
        model[1].value.copy_((value.to(torch.float32) if value.dtype.itemsize == 1 else value) * 0)
        model[2].weight.data.add_(1)
        raise LookupError("mine")
    assert not hasattr(raised.value, "__notes__")
    assert {name: bits(tensor) for name, tensor in model.state_dict().items()} == before
    assert all(module.training for module in model.modules()) and random.getstate() == state


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_graphs_of_before_can_be_differentiated_if_nothing_has_changed(value):
    model = holding(value)
    model[2].weight.data[0] = float("nan")
    loss = model[2](model[0](torch.ones(1, 2)).sin()).sum()
    versions = [tensor._version for tensor in (*model.parameters(), *model.buffers())]
    with as_found(model):
        pass
    loss.backward()
    assert [tensor._version for tensor in (*model.parameters(), *model.buffers())] == versions


def test_tensors_keep_their_memory():
    """Values that a measurement puts in place of the weights are not overwritten with these."""
    model, values = nn.Linear(2, 2), torch.zeros(6)
    places = [tensor.data_ptr() for tensor in model.parameters()]
    with as_found(model):
        nn.utils.vector_to_parameters(values, model.parameters())
    assert [tensor.data_ptr() for tensor in model.parameters()] == places and not values.any() and model.weight.any()


def test_a_tensor_of_inference_is_restored():
    model = nn.Module()
    with torch.inference_mode():
        model.register_buffer("value", torch.ones(2))
    with as_found(model):
        model.value.data.zero_()
    assert model.value.tolist() == [1, 1]


class Stubborn(nn.Module):
    """Cannot be switched back to training."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.stuck = True

    def __setattr__(self, name, value):
        if name == "training" and getattr(self, "stuck", False):
            raise LookupError("stuck")
        super().__setattr__(name, value)


@pytest.mark.parametrize("raised", [None, ValueError("mine"), KeyboardInterrupt()])
def test_what_cannot_be_restored_is_said_once_all_else_is(raised):
    model = Stubborn()
    before = model.inner.weight.item()
    with pytest.raises(plumb.Error if raised is None else type(raised)) as seen, as_found(model), torch.no_grad():
        model.inner.weight.add_(1)
        if raised is not None:
            raise raised
    text = "the mode of the model could not be restored: stuck"
    assert str(seen.value) == text if raised is None else seen.value is raised and seen.value.__notes__ == [text]
    assert model.inner.weight.item() == before


def test_an_exception_holds_nothing_longer_than_it_lives():
    class Memory:
        pass

    seen = []

    def measure():
        memory = Memory()
        seen.append(weakref.ref(memory))
        raise ValueError

    try:
        with as_found(nn.Linear(1, 1)):
            measure()
    except ValueError:
        pass
    assert seen[0]() is None


def test_modules_that_are_not_initialized():
    model = nn.Sequential(nn.LazyLinear(3))
    with pytest.raises(plumb.Error, match="0.weight is not initialized yet\ncall the model once"), as_found(model):
        pass
