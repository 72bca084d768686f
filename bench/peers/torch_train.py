"""Training steps in PyTorch, eager and compiled: forward, backward, Adam. The counterpart of `plumb bench train` and of
`plumb bench decoder`."""
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import torch_model
from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    work = read_work(options.export)
    sizes = work['sizes']
    device = torch.device(options.device)
    source, target, labels = (ids.to(device) for ids in torch_model.tensors(work['batches'][0]))
    translates = work['what'] == 'train'
    inputs = (source, target) if translates else (target,)
    bf16 = sizes['precision'] == 'bf16'

    def load() -> nn.Module:
        if translates:
            return torch_model.load(options.export, sizes, work['dropout']).to(device)
        return torch_model.load_language_model(options.export, sizes).to(device)

    def criterion(logits: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=work['label_smoothing'])

    def training(compiled: bool) -> Callable[[], object]:
        model = load()
        optimizer = torch.optim.Adam(model.parameters(), lr=work['learning_rate'], betas=(0.9, 0.98), eps=1e-9,
                                     fused=True)
        if not compiled:
            with torch.no_grad():
                loss = criterion(model.eval()(*inputs)).item()
            torch_model.check('the loss', loss, work['batches'][0]['loss'], 1e-4)
            model.train()

        def loss_of(*inputs: Tensor) -> Tensor:
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                return criterion(model(*inputs))

        loss_of_batch = torch.compile(loss_of, dynamic=False) if compiled else loss_of

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            loss_of_batch(*inputs).backward()
            optimizer.step()

        return step

    eager, compiled = training(False), training(True)
    begin = time.perf_counter()
    compiled()
    compiling = time.perf_counter() - begin

    def figures(step: Callable[[], object]) -> Figures:
        seconds = median_seconds(step, options.runs)
        return {'seconds_per_step': seconds, 'target_tokens_per_second': labels.numel() / seconds}

    works = {'eager': lambda: figures(eager), 'compiled': lambda: figures(compiled)}
    return works, {'versions': {'PyTorch': torch.__version__}, 'compile_seconds': compiling}


if __name__ == '__main__':
    take_turns(prepare)
