#!/usr/bin/env python3
"""Logs of made-up runs as other programs write them, for tests/judge/run_records_test.cpp.

Writes tests/golden/runs: two arms of three seeds with four points each, whose losses `loss` gives, logged by
PyTorch's SummaryWriter, by Lightning's CSVLogger and as the state of transformers' Trainer.

    pip install torch tensorboard lightning transformers
    scripts/golden/run_logs.py
"""
import pathlib
import shutil

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'tests/golden/runs'
ARMS = ['base', 'wide']
SEEDS = [1, 2, 3]
STEPS = [0, 100, 200, 300]


def loss(arm, seed, step):
    """Each is exact in float32."""
    return 4 - ARMS.index(arm) * step / 1600 - step / 400 + seed / 64


def event_files():
    from torch.utils.tensorboard import SummaryWriter

    for arm in ARMS:
        for seed in SEEDS:
            folder = FOLDER / 'tensorboard' / f'{arm}-{seed}'
            with SummaryWriter(folder) as writer:
                writer.add_hparams({'seed': seed, 'width': arm, 'lr': 1e-3, 'tied': True}, {}, run_name='.')
                for step in STEPS:
                    writer.add_scalar('loss/eval', loss(arm, seed, step), step)
                    writer.add_scalar('loss/again', loss(arm, seed, step), step, new_style=True)
            # One name on every machine.
            for number, file in enumerate(sorted(folder.glob('events*'))):
                file.rename(folder / f'events.out.tfevents.{number}')


def tables():
    from lightning.pytorch.loggers import CSVLogger

    for arm in ARMS:
        for seed in SEEDS:
            logger = CSVLogger(FOLDER / 'lightning', name=arm, version=f'seed_{seed}')
            for step in STEPS:
                logger.log_metrics({'train_loss': 9.0}, step=step)
                logger.log_metrics({'val_loss': loss(arm, seed, step)}, step=step)
            logger.save()


def trainer_states():
    from transformers import TrainerState

    for arm in ARMS:
        for seed in SEEDS:
            folder = FOLDER / 'trainer' / f'{arm}-{seed}'
            folder.mkdir(parents=True)
            history = [{'epoch': step / 100, 'eval_loss': loss(arm, seed, step), 'step': step} for step in STEPS]
            TrainerState(log_history=history, global_step=300).save_to_json(folder / 'trainer_state.json')


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
event_files()
tables()
trainer_states()
