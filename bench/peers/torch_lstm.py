"""LSTM layers in PyTorch (torch.nn.LSTM), forward and backward. The counterpart of `plumb bench lstm`."""
from collections.abc import Callable, Mapping

import torch
from safetensors.torch import load_file

import torch_model
from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    work = read_work(options.export)
    sizes = work['sizes']
    bf16 = sizes['precision'] == 'bf16'
    tensors = load_file(options.export / 'model.safetensors')
    # PyTorch is fastest with the tokens of one time step adjacent in memory.
    by_step = tensors.pop('x').view(sizes['rows'], sizes['length'], sizes['input']).transpose(0, 1).contiguous()
    model = torch.nn.LSTM(sizes['input'], sizes['hidden'], sizes['layers'])
    model.load_state_dict(tensors)
    leaves = [by_step.requires_grad_(), *model.parameters()]
    cotangent = torch.ones(sizes['length'], sizes['rows'], sizes['hidden'])

    def output() -> torch.Tensor:
        with torch.autocast('cpu', torch.bfloat16, enabled=bf16):
            hidden: torch.Tensor = model(by_step)[0]
        return hidden

    def forward() -> None:
        with torch.no_grad():
            output()

    with torch.no_grad():
        torch_model.check('the mean of squares', model(by_step)[0].square().mean().item(), work['mean_of_squares'], 1e-4)

    def figures() -> Figures:
        def gradient() -> object:
            hidden = output()
            return torch.autograd.grad(hidden, leaves, cotangent.to(hidden.dtype))

        return {'forward_seconds': median_seconds(forward, options.runs),
                'gradient_seconds': median_seconds(gradient, options.runs)}

    return {'eager': figures}, {'versions': {'PyTorch': torch.__version__}}


if __name__ == '__main__':
    take_turns(prepare)
