#!/usr/bin/env python3
"""Loads exported folders (`plumb export`) with the PyPI package `transformers`.

Every folder of tests/golden/huggingface is imported and exported, once with the config.json that it came with and, if the
family can be exported, once with a config.json that Plumb writes. The logits in float64 are compared with those that
`transformers` computed from the original. With --run, the greedy continuation of a prompt by a trained run is compared with
that of its exported folder: the tokens, and their log-probability.

    pip install torch transformers safetensors
    scripts/check_exports.py --plumb build/plumb
    scripts/check_exports.py --plumb build/plumb --run runs/wikitext --prompt "The city of"
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / 'golden'))
from imported_models import logits_of as of_encoder, run_encoder, waves  # noqa: E402
from transformers_models import ROOT, flat, in_float64, largest_difference  # noqa: E402


def plumb(arguments, *command):
    subprocess.run([arguments.plumb, *map(str, command), '-q'], check=True, stdout=subprocess.DEVNULL)


def load(folder):
    """Loads a folder with from_pretrained, then copies it to a model built in float64 throughout."""
    make = getattr(transformers, json.loads((folder / 'config.json').read_text())['architectures'][0])
    loaded, report = make.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    strays = [key for kind in ('missing_keys', 'unexpected_keys', 'mismatched_keys') for key in report[kind]
              if not (kind == 'missing_keys' and 'pooler.' in key or 'seq_relationship' in key)]  # left out
    if strays:
        sys.exit(f'{folder}: {strays}')
    config = loaded.config
    config._attn_implementation = 'eager'
    with in_float64():
        model = make(config).double().eval()
        if hasattr(getattr(model, 'lm_head', None), 'weight'):  # may be tied to the embedding
            model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        model.load_state_dict(loaded.double().state_dict())
    if config.model_type == 'marian':
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.data = waves(side.embed_positions.weight)
    return model


def logits_of(model, values):
    if 'sources' in values:
        return torch.cat([model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
                          for source, target in zip(values['sources'], values['tokens'])])
    if 'segments' in values:
        outputs = [run_encoder(model, torch.tensor(row), torch.tensor(segments))
                   for row, segments in zip(values['tokens'], values['segments'])]
        if 'logits' not in values:
            return torch.cat([output.hidden_states[-1][0] for output in outputs])
        return torch.cat([of_encoder(output).reshape(-1, len(values['logits'][0])) for output in outputs])
    return torch.cat([model(torch.tensor([row]), use_cache=False).logits[0] for row in values['tokens']])


def check_golden(arguments, scratch):
    worst = 0.0
    for original in sorted((ROOT / 'tests' / 'golden' / 'huggingface').iterdir()):
        values = json.loads((original / 'values.json').read_text())
        run = scratch / f'{original.name}-run'
        plumb(arguments, 'import', original, '--out', run)
        for kind in ('as it came', 'as trained'):
            folder = scratch / f'{original.name}-{kind[3:5]}'
            if kind == 'as trained':
                (run / 'config.json').unlink()
                if subprocess.run([arguments.plumb, 'export', run, folder, '-q'], capture_output=True).returncode != 0:
                    print(f'{original.name}, {kind}: has no form as a trained run')
                    continue
            else:
                plumb(arguments, 'export', run, '--format', 'huggingface', folder)
            model = load(folder)
            with torch.no_grad(), in_float64():
                difference = largest_difference(flat(logits_of(model, values)),
                                                values.get('logits') or values['hidden'])
            print(f'{original.name}, {kind}: values differ by {difference:.1e}')
            worst = max(worst, difference)
    return worst < 1e-10


def check_run(arguments, scratch):
    folder = scratch / 'run'
    plumb(arguments, 'export', arguments.run, '--format', 'huggingface', folder)
    plumb(arguments, 'generate', arguments.run, '--prompt', arguments.prompt, '--greedy', '--max-tokens', '64',
          '--json', scratch / 'text.json')
    sample = json.loads((scratch / 'text.json').read_text())['samples'][0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(arguments.prompt, return_tensors='pt').input_ids
    model = load(folder)
    row = ids[0]
    with torch.no_grad(), in_float64():
        end, log_probability, found = model.generation_config.eos_token_id, 0.0, []
        while len(found) < 64:
            scores = model(row[None]).logits[0, -1].log_softmax(0)
            scores_of_text = scores.clone()
            scores_of_text[[0, 1, 3]] = -float('inf')  # PAD, BOS and unknown, which Plumb never draws
            token = scores_of_text.argmax().item()
            log_probability += scores[token].item()
            if token == end:
                break
            found.append(token)
            row = torch.cat([row, torch.tensor([token])])
    difference = abs(log_probability - sample['log_probability'])
    print(f'{arguments.run}: prompt {ids[0].tolist()}; {len(found)} tokens, {"the same" if found == sample["tokens"] else "others"}; '
          f'log-probabilities differ by {difference:.1e} of {abs(log_probability):.1f}')
    print(tokenizer.decode(found))
    return found == sample['tokens'] and difference < 1e-4 * max(1.0, abs(log_probability))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--plumb', default='build/plumb', help='the program (default: %(default)s)')
    parser.add_argument('--run', help='a trained language model to compare instead')
    parser.add_argument('--prompt', default='', help='what it continues')
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as scratch:
        check = check_run if arguments.run else check_golden
        sys.exit(0 if check(arguments, pathlib.Path(scratch)) else 1)


if __name__ == '__main__':
    main()
