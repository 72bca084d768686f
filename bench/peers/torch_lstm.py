"""LSTM layers in PyTorch (torch.nn.LSTM), forward and backward. The counterpart of `lstm` in build/bench/kernels."""
from collections.abc import Callable, Mapping

import torch

from exported import kernel_arguments
from turns import Figures, median_seconds, take_turns

INPUT, LAYERS, LENGTH = 400, 3, 70


def seconds(name: str, runs: int) -> float:
    """Of "lstm/WIDTH/ROWS" or "lstm_gradient/WIDTH/ROWS"."""
    kind, width, rows = name.split('/')
    # PyTorch is fastest with the tokens of one time step adjacent in memory.
    by_step = torch.randn(LENGTH, int(rows), INPUT, requires_grad=True)
    model = torch.nn.LSTM(INPUT, int(width), LAYERS)
    leaves = [by_step, *model.parameters()]
    cotangent = torch.ones(LENGTH, int(rows), int(width))

    def forward() -> None:
        with torch.no_grad():
            model(by_step)

    def gradient() -> object:
        return torch.autograd.grad(model(by_step)[0], leaves, cotangent)

    return median_seconds(gradient if kind.endswith('gradient') else forward, runs)


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = kernel_arguments(__doc__)
    torch.set_num_threads(options.threads)

    def figures() -> Figures:
        return {'seconds': {name: seconds(name, options.runs) for name in options.names}}

    return {'eager': figures}, {'versions': {'PyTorch': torch.__version__}}


if __name__ == '__main__':
    take_turns(prepare)
