"""Updates of a decoder's parameters by PyTorch's optimizers: fused where they can be, else over lists of tensors (foreach),
else one tensor after the other. The counterpart of `plumb bench optimizer`; Plumb's other optimizers are not in PyTorch."""
from collections.abc import Callable, Mapping
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

import torch_model
from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns

Named = dict[str, Tensor]
Make = Callable[[Named], list[torch.optim.Optimizer]]


def is_hidden_matrix(name: str, parameter: Tensor) -> bool:
    """True if Muon trains the parameter; AdamW trains the others."""
    return parameter.dim() == 2 and '.layers.' in name


def with_parts(tensors: Named) -> Named:
    """Splits query, key and value into three matrices, which Muon orthogonalizes separately."""
    separate = {}
    for name, tensor in tensors.items():
        if name.endswith('in_proj_weight'):
            separate.update({f'{name}.{i}': part.clone() for i, part in enumerate(tensor.chunk(3))})
        else:
            separate[name] = tensor
    return separate


def makers(rate: float, decay: float) -> dict[str, Make]:
    """Factories by Plumb's optimizer name and the form of PyTorch's optimizer, with Plumb's defaults."""
    both: dict[str, Any] = {'lr': rate, 'weight_decay': decay}

    def muon(parameters: Named) -> list[torch.optim.Optimizer]:
        matrices = [p for name, p in parameters.items() if is_hidden_matrix(name, p)]
        others = [p for name, p in parameters.items() if not is_hidden_matrix(name, p)]
        return [torch.optim.Muon(matrices, momentum=0.95, ns_steps=5, **both),
                torch.optim.AdamW(others, betas=(0.9, 0.95), eps=1e-10, fused=True, **both)]

    made: dict[str, Make] = {
        'adam, fused': lambda p: [torch.optim.Adam(
            p.values(), betas=(0.9, 0.98), eps=1e-9, decoupled_weight_decay=True, fused=True, **both)],
        'adamw, fused': lambda p: [torch.optim.AdamW(p.values(), betas=(0.9, 0.999), eps=1e-8, fused=True, **both)],
        'sgd, fused': lambda p: [torch.optim.SGD(p.values(), momentum=0.9, fused=True, **both)],
        'radam, foreach': lambda p: [torch.optim.RAdam(
            p.values(), betas=(0.9, 0.999), eps=1e-8, decoupled_weight_decay=True, foreach=True, **both)],
        'adafactor, foreach': lambda p: [torch.optim.Adafactor(
            p.values(), beta2_decay=-0.8, d=1.0, foreach=True, **both)],
    }
    if hasattr(torch.optim, 'Muon'):
        made['muon, one by one, bfloat16'] = muon
    return made


class Update:
    """Steps of one optimizer from the exported parameters, with the exported gradients."""

    def __init__(self, tensors: Named, make: Make) -> None:
        self.start = {name: tensor for name, tensor in tensors.items() if not name.startswith('gradient.')}
        self.parameters = {name: tensor.clone() for name, tensor in self.start.items()}
        for name, parameter in self.parameters.items():
            parameter.requires_grad_().grad = tensors['gradient.' + name]
        self.optimizers = make(self.parameters)

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def moved(self) -> float:
        """The root mean square change of the parameters so far."""
        with torch.no_grad():
            squares = [(p - self.start[name]).square().sum(dtype=torch.float64) for name, p in self.parameters.items()]
        count = sum(p.numel() for p in self.parameters.values())
        return float((torch.stack(squares).sum() / count).sqrt())


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    work = read_work(options.export)
    if work['sizes']['cautious']:
        raise ValueError('PyTorch has no cautious optimizers')
    tensors = load_file(options.export / 'model.safetensors')
    separate = with_parts(tensors)

    def begun(name: str, make: Make) -> Update:
        update = Update(separate if name.startswith('muon') else tensors, make)
        for _ in range(work['untimed_steps']):
            update.step()
        return update

    def timed(name: str, make: Make) -> Callable[[], Figures]:
        return lambda: {'seconds': median_seconds(begun(name, make).step, options.runs)}

    works = {}
    for name, make in makers(work['learning_rate'], work['weight_decay']).items():
        plumbs = work['moved'].get(name.split(',')[0])
        if plumbs is None:
            continue
        # PyTorch's Muon multiplies matrices in bfloat16.
        tolerance = 0.05 if name.startswith('muon') else 1e-3
        torch_model.check(f'the movement by {name}', begun(name, make).moved(), plumbs, tolerance)
        works[name] = timed(name, make)
    return works, {'versions': {'PyTorch': torch.__version__}}


if __name__ == '__main__':
    take_turns(prepare)
