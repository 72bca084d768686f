"""`python -m plumb preflight script.py …`: a script up to where its Trainer would train, and a look at that run."""

import contextlib
import importlib
import os
import runpy
import sys
from typing import Any, NoReturn

from torch.optim.optimizer import register_optimizer_step_pre_hook

from .preflighting import preflight


def main() -> NoReturn:
    """Exit status: 0; 3: with alarms; 2: there is no Trainer to look at."""
    if len(sys.argv) < 3 or sys.argv[1] != "preflight":
        _end("usage: python -m plumb preflight script.py [its arguments]")
    script = sys.argv[2]

    def no_trainer(*step: Any) -> None:
        _end(f"{script} trains in a loop of its own\ncall plumb.preflight(model=, optimizer=, loss=, loader=) before it")

    def look(trainer: Any, model: Any = None, train_dataloaders: Any = None, *others: Any, **options: Any) -> None:
        own_loop.remove()
        loader = options.get("datamodule") if train_dataloaders is None else train_dataloaders
        sys.exit(preflight(trainer, model, loader).exit_status)

    own_loop = register_optimizer_step_pre_hook(no_trainer)
    for name, method in (("transformers", "train"), ("lightning.pytorch", "fit"), ("pytorch_lightning", "fit")):
        with contextlib.suppress(ImportError):
            setattr(importlib.import_module(name).Trainer, method, look)
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")
    _end(f"{script} ended without train() or fit() of a Trainer of transformers or Lightning")


def _end(text: str) -> NoReturn:
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
