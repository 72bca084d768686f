#!/usr/bin/env python3
"""Writes runs into the stores of other programs: name, configuration, and all numbers of metrics.jsonl by step.

    scripts/export_runs.py out/run --to trackio
    scripts/export_runs.py out --to wandb --project warm-up     # all runs below out; afterwards: wandb sync FOLDER

Nothing is sent anywhere: wandb writes its offline form, and mlflow and trackio a local store, unless MLFLOW_TRACKING_URI
names another.
"""
import argparse
import contextlib
import importlib
import json
import math
import os
import pathlib
import sys
import tomllib

PACKAGES = {'wandb': 'wandb', 'mlflow': 'mlflow', 'trackio': 'trackio'}


def read_run(folder, root):
    """Name, configuration, numbers by step, and outcome (None while it trains), from the files of docs/formats/run.md."""
    for file, most in ((folder / 'config.toml', 1 << 20), (folder / 'metrics.jsonl', 1 << 30)):
        if not file.is_file() or file.stat().st_size > most:  # a pipe would never end
            raise ValueError(f'{file.name} is no file of at most {most >> 20} MiB')
    config = tomllib.loads((folder / 'config.toml').read_text(encoding='utf-8'))
    lines = (folder / 'metrics.jsonl').read_text(encoding='utf-8').split('\n')
    records = [json.loads(line) for line in lines[:-1] if line]  # a run that goes on may be writing its last line
    steps, outcome = {}, None
    for record in records:
        if 'step' not in record or 'trouble' in record:
            continue
        outcome = record.get('outcome', outcome)
        numbers = flatten(record['watch'], 'watch/', '/') if 'watch' in record else (
            {key: value for key, value in (record | record.get('metrics', {})).items() if key not in ('step', 'metrics')})
        # Null stands for a number that is not finite.
        numbers = {key: math.nan if value is None else value for key, value in numbers.items()
                   if value is None or isinstance(value, (int, float)) and not isinstance(value, bool)}
        if numbers:
            steps.setdefault(record['step'], {}).update(numbers)
    name = folder.resolve().name if folder == root else folder.relative_to(root).as_posix()
    return name, config, dict(sorted(steps.items())), outcome


def flatten(values, prefix='', separator='.'):
    """{'a': {'b': 1}} as {'a.b': 1}; lists stay values."""
    flat = {}
    for key, value in values.items():
        flat |= flatten(value, f'{prefix}{key}{separator}', separator) if isinstance(value, dict) else {prefix + key: value}
    return flat


def to_wandb(wandb, project, out, name, config, steps, outcome):
    settings = wandb.Settings(silent=True, console='off', x_disable_stats=True, x_disable_meta=True)
    with wandb.init(project=project, name=name, config=config, mode='offline', dir=out, settings=settings) as run:
        for step, numbers in steps.items():
            run.log(numbers, step=step)
        run.summary['outcome'] = outcome


def to_mlflow(mlflow, project, out, name, config, steps, outcome):
    if 'MLFLOW_TRACKING_URI' not in os.environ:
        mlflow.set_tracking_uri(f"sqlite:///{(out / 'mlflow.db').resolve()}")
    mlflow.set_experiment(project)
    client = mlflow.tracking.MlflowClient()
    entities = mlflow.entities
    ended = {None: 'RUNNING', 'finished': 'FINISHED'}.get(outcome, 'FAILED')
    with mlflow.start_run(run_name=name, tags={'outcome': str(outcome)}) as run:
        params = [entities.Param(key, str(value)) for key, value in flatten(config).items()]
        for begin in range(0, len(params), 100):  # the most that one call takes
            client.log_batch(run.info.run_id, params=params[begin:begin + 100])
        metrics = [entities.Metric(key, value, 0, step) for step, numbers in steps.items() for key, value in numbers.items()]
        for begin in range(0, len(metrics), 1000):
            client.log_batch(run.info.run_id, metrics=metrics[begin:begin + 1000])
    client.set_terminated(run.info.run_id, ended)


def to_trackio(trackio, project, out, name, config, steps, outcome):
    run = trackio.init(project=project, name=name, config=config | {'outcome': outcome})
    for step, numbers in steps.items():
        run.log(numbers, step=step)
    trackio.finish()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('runs', nargs='+', type=pathlib.Path, metavar='RUN', help='a run directory, or a folder of them')
    parser.add_argument('--to', required=True, choices=PACKAGES)
    parser.add_argument('--project', default='plumb', help='in mlflow, the experiment (default: %(default)s)')
    parser.add_argument('--out', type=pathlib.Path, default=pathlib.Path('.'),
                        help='where wandb/, mlflow.db or trackio/ is made (default: here)')
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault('TRACKIO_DIR', str((options.out / 'trackio').resolve()))  # read when it is imported
    try:
        package = importlib.import_module(options.to)
    except ImportError as error:
        if error.name != options.to:
            raise
        sys.exit(f'{options.to} is not installed: pip install {PACKAGES[options.to]}')
    write = {'wandb': to_wandb, 'mlflow': to_mlflow, 'trackio': to_trackio}[options.to]
    status = 0
    for root in options.runs:
        folders = [root] if (root / 'metrics.jsonl').exists() else sorted(file.parent for file in root.rglob('metrics.jsonl'))
        if not folders:
            print(f'{root} has no run: name a folder that `plumb train --out` wrote', file=sys.stderr)
            status = 1
        for folder in folders:
            try:
                name, *contents = read_run(folder, root)
            except Exception as error:  # whatever a file may contain
                print(f'{str(folder)!r} is not a run, or damaged: {error}', file=sys.stderr)
                status = 1
                continue
            with contextlib.redirect_stdout(sys.stderr):  # where these libraries talk
                write(package, options.project, options.out, name, *contents)
            print(f'{name}: {len(contents[1])} steps')
    return status


if __name__ == '__main__':
    sys.exit(main())
