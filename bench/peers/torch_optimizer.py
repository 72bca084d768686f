"""Updates of a decoder's parameters by PyTorch's optimizers: fused where they can be, else over lists of tensors (foreach),
else one tensor after the other. The counterpart of `update` in build/bench/kernels; Plumb's other optimizers are not in
PyTorch."""
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

import torch_model
from exported import kernel_arguments
from turns import Figures, median_seconds, take_turns

Named = dict[str, Tensor]
Make = Callable[[Named], list[torch.optim.Optimizer]]

SIZES = {'d_model': 512, 'feed_forward': 2048, 'heads': 8, 'layers': 8, 'vocabulary': 32000, 'positions': 1024,
         'norm_eps': 1e-5}
RATE, DECAY, UNTIMED_STEPS = 1e-3, 0.1, 6


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
    """Steps of one optimizer with the same random gradients."""

    def __init__(self, parameters: Named, make: Make) -> None:
        self.parameters = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        for parameter in self.parameters.values():
            parameter.requires_grad_().grad = 1e-2 * torch.randn_like(parameter)
        self.optimizers = make(self.parameters)

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = kernel_arguments(__doc__)
    torch.set_num_threads(options.threads)
    tensors = dict(torch_model.LanguageModel(SIZES).named_parameters())
    separate = with_parts(tensors)

    def timed(name: str, make: Make) -> Callable[[], Figures]:
        optimizer = name.split(',')[0]
        # PyTorch's Muon multiplies matrices in bfloat16.
        names = {f'update/{optimizer}', f'update/{optimizer}-bf16'} & set(options.names)

        def figures() -> Figures:
            update = Update(separate if optimizer == 'muon' else tensors, make)
            for _ in range(UNTIMED_STEPS):
                update.step()
            return {'seconds': dict.fromkeys(names, median_seconds(update.step, options.runs))}

        return figures

    works = {name: timed(name, make) for name, make in makers(RATE, DECAY).items()
             if f'update/{name.split(",")[0]}' in options.names}
    return works, {'versions': {'PyTorch': torch.__version__}}


if __name__ == '__main__':
    take_turns(prepare)
