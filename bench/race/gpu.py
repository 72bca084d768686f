"""A part of scripts/gpu.sh: measures Plumb, and PyTorch beside it, on one GPU. Every figure is appended to a file as a
line of JSON; for what is missing or fails, there is a line with a sentence."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PEERS = pathlib.Path(__file__).resolve().parent.parent / 'peers'
Figures = dict[str, Any]
# Dense bfloat16 operations per second, and bytes per second of memory, of NVIDIA's data sheets, without sparsity.
PEAKS = {'H200': (989.5e12, 4.8e12), 'H100': (989.5e12, 3.35e12), 'A100': (312e12, 2.04e12)}
LLAMA = {'decoder_layers': 22, 'd_model': 1280, 'feed_forward': 3456, 'heads': 10, 'target_vocabulary': 32000}
SHAPES: dict[str, Figures] = {
    '0.5B': LLAMA,
    '1.5B': LLAMA | {'decoder_layers': 28, 'd_model': 2048, 'feed_forward': 5504, 'heads': 16},
    '0.6B': {'decoder_layers': 28, 'd_model': 1024, 'feed_forward': 3072, 'heads': 16, 'kv_heads': 8, 'head_size': 128,
             'qk_norm': 'rmsnorm', 'target_vocabulary': 151936, 'share_embeddings': 'target'},  # Qwen 3
    'small': {'decoder_layers': 12, 'd_model': 64, 'feed_forward': 192, 'heads': 4, 'target_vocabulary': 512}}
TINY = {'decoder_layers': 2, 'd_model': 64, 'feed_forward': 192, 'heads': 4, 'target_vocabulary': 512}
# Of `plumb bench hvp`: that of the performance table, the usual model's, and one that fills a GPU.
PRODUCTS = {'d 256, 16 × 24 tokens': [],
            'd 512, 64 × 32 tokens': ['--d-model', '512', '--feed-forward', '2048', '--sentences', '64', '--length',
                                      '32'],
            'd 1,024, 128 × 64 tokens': ['--d-model', '1024', '--feed-forward', '4096', '--heads', '16', '--sentences',
                                         '128', '--length', '64']}
TINY_BENCH = ['--d-model', '32', '--feed-forward', '128', '--layers', '1', '--vocabulary', '100', '--heads', '4']
TINY_BATCH = ['--sentences', '4', '--length', '8']


class Missing(Exception):
    """A sentence that says why there is no figure."""


class Part:
    """What a part has to work with."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name, self.out, self.work = options.part, options.out, options.work
        self.plumb, self.tests, self.device, self.tiny = options.plumb, options.tests, options.device, options.tiny
        self.bf16 = 'float32' if self.tiny else 'bf16'  # not every processor multiplies in bfloat16
        self.end = time.monotonic() + options.seconds
        self.longest = 0.6 * options.seconds  # of one command, so that one that hangs leaves time to others
        self.environment = os.environ | {'TORCHINDUCTOR_CACHE_DIR': str(self.work / 'inductor')}

    def record(self, **figures: Any) -> None:
        with self.out.open('a', encoding='utf-8') as file:
            file.write(json.dumps({'part': self.name, **figures}) + '\n')

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        """Does the work; a failure becomes a line, and the next work follows."""
        try:
            work()
        except Missing as reason:
            self.record(note=f'{what}: {reason}')
        except Exception as error:  # of any kind: it must not take the other figures with it
            self.record(note=f'{what}: {type(error).__name__}: {error}'[:400])

    def run(self, command: list[str], input: str = '') -> str:
        left = self.end - time.monotonic()
        if left < 1:
            raise Missing('no time was left')
        print('  ' + ' '.join(command), file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, input=input, capture_output=True, text=True, env=self.environment,
                                  timeout=min(left, self.longest))
        except subprocess.TimeoutExpired:
            raise Missing('did not end in its time') from None
        except OSError as error:
            raise Missing(f'{command[0]} cannot be started: {error.strerror}') from None
        if done.returncode != 0:
            raise Missing(f'ended with status {done.returncode}: {last_lines(done.stderr)}')
        return done.stdout

    def plumbs(self, *arguments: str) -> Figures:
        """The document of a command of Plumb."""
        file = self.work / 'result.json'
        self.run([self.plumb, *arguments, '--device', self.device, '--json', str(file)])
        figures: Figures = json.loads(file.read_text(encoding='utf-8'))
        return figures

    def peer(self, script: str, *arguments: str, works: tuple[str, ...] = ()) -> list[Figures]:
        """The lines of a peer in this Python: of bench.py's peers, after its description, one for each of the works."""
        text = self.run([sys.executable, str(PEERS / script), *arguments, '--device', self.device], '\n'.join(works))
        return [json.loads(line) for line in text.splitlines() if line.startswith('{')]

    def llama(self, work: str, config: pathlib.Path, rows: int, length: int, runs: int, *more: str) -> Figures:
        return self.peer('torch_llama.py', work, '--config', str(config), '--rows', str(rows), '--length', str(length),
                         '--runs', str(runs), '--precision', self.bf16, *more)[0]

    def config(self, model: str, train: Figures | None = None) -> tuple[pathlib.Path, Figures]:
        """Writes the configuration of a model of SHAPES, or of a tiny one; returns it with its sizes."""
        sizes: Figures = {'kind': 'decoder', 'residual': 'pre-ln', 'norm': 'rmsnorm', 'positions': 'rotary',
                          'activation': 'swiglu', 'attention_bias': 'none', 'feed_forward_bias': False,
                          'share_embeddings': 'none', 'embedding_factor': 1.0, 'dropout': 0.0,
                          'initialization': 'gpt-2', **(TINY if self.tiny else SHAPES[model])}
        path: pathlib.Path = self.work / f'{model}.toml'
        sections = {'model': sizes, 'model.rotary': {'interleaved': False}, 'train': train or {}}
        path.write_text(''.join(f'[{name}]\n' + ''.join(f'{key} = {json.dumps(value)}\n' for key, value in keys.items())
                                for name, keys in sections.items()), encoding='utf-8')
        return path, sizes

    def operations(self, config: pathlib.Path, length: int) -> Figures:
        """Parameters, and operations of a training step per token, as `plumb plan` counts them."""
        file = self.work / 'plan.json'
        self.run([self.plumb, 'plan', str(config), '--sequence', str(length), '--json', str(file)])
        plan = json.loads(file.read_text(encoding='utf-8'))
        return {'parameters': plan['parameters'], 'operations_per_token': plan['operations_per_token']}

    def text(self, vocabulary: int, length: int) -> str:
        """A data directory of random words, with a vocabulary of just this size."""
        folder = self.work / f'data-{vocabulary}-{length}'
        if not folder.exists():
            words, file = [f'w{number}' for number in range(vocabulary - 4)], self.work / 'words.txt'  # 4 are special
            with file.open('w', encoding='utf-8') as text:
                for _ in range(max(21, 40000 // vocabulary)):
                    random.shuffle(words)
                    for begin in range(0, len(words), 1000):
                        text.write(' '.join(words[begin:begin + 1000]) + '\n')
            self.run([self.plumb, 'data', 'text', '--train', str(file), '--tokenizer', 'word', '--vocabulary',
                      str(vocabulary), '--block', str(length), '--valid-size', '1', '--out', str(folder)])
        return str(folder)


def last_lines(text: str) -> str:
    return ' '.join([line.strip() for line in text.splitlines() if line.strip()][-2:])[-300:]


def gpu_says(field: str) -> str:
    """A field of nvidia-smi; empty without a GPU."""
    try:
        return subprocess.run(['nvidia-smi', f'--query-gpu={field}', '--format=csv,noheader'], capture_output=True,
                              text=True).stdout.strip()
    except OSError:
        return ''


def peaks() -> tuple[float, float] | None:
    gpu = gpu_says('name')
    return next((peak for name, peak in PEAKS.items() if name in gpu), None)


def rates(folder: pathlib.Path) -> list[float]:
    """Tokens per second at the points of a run so far, without the first three."""
    try:
        text = (folder / 'metrics.jsonl').read_text(encoding='utf-8')
    except OSError:
        return []
    points = [json.loads(line) for line in text.split('\n')[:-1]]  # the last line may still be written
    return [point['tokens_per_second'] for point in points if point.get('tokens_per_second')][3:]


def machine(part: Part) -> None:
    def torch_and_gpu() -> None:
        import torch

        sys.path.insert(0, str(PEERS))
        from turns import median_seconds

        size = 256 if part.tiny else 8192
        a = torch.randn(size, size, device=part.device, dtype=torch.float32 if part.tiny else torch.bfloat16)
        seconds = median_seconds(lambda: a @ a, 20)
        big = torch.empty(size * size * (1 if part.tiny else 16), device=part.device)
        copied = median_seconds(lambda: big.clone(), 10)
        part.record(torch=torch.__version__, cuda=torch.version.cuda,
                    product_operations_per_second=2 * size ** 3 / seconds,
                    copied_bytes_per_second=2 * 4 * big.numel() / copied)

    def gpu() -> None:
        if not gpu_says('name'):
            raise Missing('nvidia-smi tells of none')
        part.record(gpu=gpu_says('name'), driver=gpu_says('driver_version'), memory=gpu_says('memory.total'))

    part.record(date=time.strftime('%Y-%m-%d'), device=part.device, size='tiny' if part.tiny else 'full',
                processors=len(os.sched_getaffinity(0)))
    part.attempt('the GPU', gpu)
    part.attempt('the program', lambda: part.record(plumb=' '.join(part.run([part.plumb, '--version']).split())))
    part.attempt('PyTorch', torch_and_gpu)


def tests(part: Part) -> None:
    """tests/devices, in four processes."""
    shards = 1 if part.tiny else 4
    only = ['--gtest_filter=DeviceNames*:PositionTables*'] if part.tiny else []
    begin = time.monotonic()
    logs = [part.out.parent / f'tests-{shard}.log' for shard in range(shards)]
    processes = []
    for shard, log in enumerate(logs):
        sharded = part.environment | {'GTEST_TOTAL_SHARDS': str(shards), 'GTEST_SHARD_INDEX': str(shard)}
        with log.open('wb') as file:
            processes.append(subprocess.Popen([part.tests, *only], env=sharded, stdout=file, stderr=file,
                                              cwd=part.work))
    broken = []
    for process in processes:
        try:
            process.wait(max(1, part.end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
        if process.wait() not in (0, 1):  # 1: some test failed
            broken.append(process.returncode)
    lines = [line for log in logs for line in log.read_text(encoding='utf-8', errors='replace').splitlines()]
    found = [re.match(r'\[ +(OK|FAILED|SKIPPED) +\] ([^ ,.]+\.[^ ,]+)', line) for line in lines]
    state = {match.group(2): match.group(1) for match in found if match}
    count = list(state.values()).count
    part.record(passed=count('OK'), skipped=count('SKIPPED'), seconds=time.monotonic() - begin,
                failed=[name for name, how in state.items() if how == 'FAILED'])
    if broken:
        part.record(note=f'tests/devices: {len(broken)} of {shards} processes broke off ({broken}); see tests-*.log')


def train(part: Part) -> None:
    """Decoders of Llama's shape; both take steps of as many tokens, with weights in float32, products in bfloat16."""
    rows, length = (2, 64) if part.tiny else (8, 2048)
    known = peaks()

    def figures(model: str, tool: str, tokens_per_second: float, counted: Figures, **more: Any) -> None:
        done = tokens_per_second * counted['operations_per_token']
        part.record(model=model, tool=tool, precision=part.bf16, tokens_per_step=rows * length,
                    tokens_per_second=tokens_per_second, operations_per_second=done,
                    peak_share=done / known[0] if known else None, **counted, **more)

    def plumb(model: str) -> None:
        config, sizes = part.config(model, training(part, rows * length, log_every=2))
        counted, data = part.operations(config, length), part.text(sizes['target_vocabulary'], length)
        reason = ''
        for pieces in (1, 2, 4):  # micro-batches of a step, if memory does not hold them at once
            folder = part.work / f'run-{model}-{pieces}'
            command = [part.plumb, 'train', '--config', str(config), '--data', data, '--out', str(folder), '--device',
                       part.device, '--set', f'train.micro_batch_tokens={rows * length // pieces}']
            print('  ' + ' '.join(command), file=sys.stderr, flush=True)
            with (part.work / 'train.log').open('w+', encoding='utf-8') as log:
                process = subprocess.Popen(command, stdout=log, stderr=log)
                while process.poll() is None and len(rates(folder)) < 8 and time.monotonic() < part.end:
                    time.sleep(0.1)
                memory = gpu_says('memory.used')
                process.kill()  # without the last checkpoint, of 16 bytes a parameter
                process.wait()
                log.seek(0)
                reason = last_lines(log.read())
            found = rates(folder)
            shutil.rmtree(folder, ignore_errors=True)
            if len(found) >= 3:
                return figures(model, 'plumb', statistics.median(found), counted, slowest=min(found),
                               fastest=max(found), micro_batches=pieces, memory=memory)
            if 'memory' not in reason:
                break
        raise Missing(f'no rate: {reason}')

    def torch(model: str) -> None:
        config, _ = part.config(model)
        counted = part.operations(config, length)
        found = part.llama('training', config, rows, length, runs=3 if part.tiny else 10)
        if found['parameters'] != counted['parameters']:
            raise Missing(f'has {found["parameters"]} parameters, and Plumb {counted["parameters"]}')
        figures(model, 'pytorch', rows * length / found['seconds_per_step'], counted, compiled=found['compiled'])

    for model in ['0.5B'] if part.tiny else ['0.5B', '1.5B']:
        part.attempt(f'{model} by Plumb', lambda: plumb(model))
        part.attempt(f'{model} by PyTorch', lambda: torch(model))


def training(part: Part, tokens: int, log_every: int) -> Figures:
    return {'optimizer': 'adamw', 'schedule': 'constant * linear_warmup', 'learning_rate': 3e-4, 'warm_up': 10,
            'weight_decay': 0.1, 'clip_norm': 1.0, 'label_smoothing': 0.0, 'batch_tokens': tokens, 'steps': 100000,
            'log_every': log_every, 'validate_every': 1000000, 'checkpoint_every': 1000000, 'precision': part.bf16}


def small(part: Part) -> None:
    """Steps per second of a small decoder: one run, many beside each other, and the same under NVIDIA's MPS."""
    rows, length, steps, many = (2, 64, 40, 2) if part.tiny else (4, 256, 150, 16)
    tokens = rows * length
    config, sizes = part.config('small', training(part, tokens, log_every=10))
    data = part.text(sizes['target_vocabulary'], length)

    def plumb(count: int, how: str, environment: dict[str, str]) -> None:
        folders = [part.work / f'small-{how}-{count}-{run}' for run in range(count)]
        begin = time.monotonic()
        command = [part.plumb, 'train', '-q', '--config', str(config), '--data', data, '--device', part.device,
                   '--threads', '1', '--set', f'train.steps={steps}', '--out']
        processes = [subprocess.Popen([*command, str(folder)], env=environment, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE) for folder in folders]
        try:
            messages = [process.communicate(timeout=max(1, part.end - time.monotonic()))[1] for process in processes]
        except subprocess.TimeoutExpired:
            for process in processes:
                process.kill()
            raise Missing('did not end in its time') from None
        seconds = time.monotonic() - begin
        if any(process.returncode for process in processes):
            raise Missing(last_lines(next(filter(None, messages), b'').decode()))
        found = [statistics.median(rates(folder)) / tokens for folder in folders]
        part.record(tool='plumb', runs=count, how=how, steps_per_second=sum(found), steps=steps, seconds=seconds)

    def torch(graph: bool) -> None:
        found = part.llama('training', config, rows, length, 5 if part.tiny else 50, *(['--graph'] if graph else []))
        part.record(tool='pytorch', runs=1, how='CUDA graphs' if graph else 'alone', compiled=found['compiled'],
                    steps_per_second=1 / found['seconds_per_step'])

    def served() -> None:
        control = shutil.which('nvidia-cuda-mps-control', path=os.environ.get('PATH', '') + ':/usr/local/nvidia/bin')
        if control is None or part.device == 'cpu':
            raise Missing('nvidia-cuda-mps-control is not there')
        place = {name: str(part.work / name) for name in ('CUDA_MPS_PIPE_DIRECTORY', 'CUDA_MPS_LOG_DIRECTORY')}
        for folder in place.values():
            pathlib.Path(folder).mkdir(exist_ok=True)
        environment = part.environment | place
        subprocess.run([control, '-d'], env=environment, check=True, timeout=10)
        try:
            plumb(many, 'MPS', environment)
        finally:
            subprocess.run([control], input='quit\n', text=True, env=environment, timeout=20)

    part.attempt('one run', lambda: plumb(1, 'alone', part.environment))
    part.attempt(f'{many} runs', lambda: plumb(many, 'side by side', part.environment))
    part.attempt(f'{many} runs under MPS', served)
    part.attempt('PyTorch', lambda: torch(False))
    if not part.tiny:
        part.attempt('PyTorch with CUDA graphs', lambda: torch(True))


def products(part: Part) -> None:
    """Hessian-vector products of encoder-decoders at three sizes, checked by each other, and of a model of 0.6B."""
    def sized(title: str, sizes: list[str]) -> None:
        export = str(part.work / 'export')
        runs = ['--runs', '2' if part.tiny else '10']
        found = part.plumbs('bench', 'hvp', *sizes, *runs, '--export', export)
        part.record(size=title, tool='plumb', gradient_seconds=found['gradient_seconds'], seconds=found['hvp_seconds'],
                    parameters=found['parameters'])
        kept = part.peer('torch_hvp.py', '--export', export, *runs, works=('gradient, eager', 'eager, graph kept'))
        part.record(size=title, tool='pytorch', gradient_seconds=kept[1]['gradient_seconds'],
                    seconds=kept[2]['hvp_seconds'])

    rows, length = (2, 32) if part.tiny else (4, 128)

    def large_plumb() -> None:
        config, sizes = part.config('0.6B')
        batch = part.work / 'batch.json'
        ids = [[random.randrange(4, sizes['target_vocabulary']) for _ in range(length)] for _ in range(rows)]
        batch.write_text(json.dumps({'tokens': ids}), encoding='utf-8')
        found = part.plumbs('spectrum', '--config', str(config), '--batch', str(batch), '--steps', '6',
                            '--graph-memory', '1' if part.tiny else '60')
        part.record(size='0.6B', tool='plumb', gradient_seconds=found['gradient_seconds'], seconds=found['hvp_seconds'],
                    parameters=found['parameters'], graphs_kept=found['graphs_kept'])

    def large_torch() -> None:
        config, _ = part.config('0.6B')
        part.record(size='0.6B', tool='pytorch', **part.llama('products', config, rows, length, 2 if part.tiny else 5))

    for title, sizes in PRODUCTS.items():
        part.attempt(title, lambda: sized(title, [*TINY_BENCH, *TINY_BATCH] if part.tiny else sizes))
        if part.tiny:
            break
    part.attempt('0.6B by Plumb', large_plumb)
    part.attempt('0.6B by PyTorch', large_torch)


def decoding(part: Part) -> None:
    """Tokens per second, and the share of the time in which memory could deliver the weights, 2 or 4 bytes each."""
    known = peaks()
    gpt_2 = ['--d-model', '768', '--feed-forward', '3072', '--layers', '12', '--vocabulary', '50257']
    larger = ['--d-model', '2048', '--feed-forward', '8192', '--layers', '24', '--heads', '16', '--vocabulary', '32000']

    def generated(title: str, sizes: list[str], precision: str) -> None:
        found = part.plumbs('bench', 'generate', *sizes, '--precision', precision)
        for batch in found['batches']:
            steps_per_second = batch['decode_tokens_per_second'] / batch['rows']
            read = steps_per_second * found['parameters'] * (2 if precision == 'bf16' else 4)
            part.record(work=title, precision=precision, rows=batch['rows'],
                        tokens_per_second=batch['decode_tokens_per_second'],
                        read_per_second=batch['prefill_tokens_per_second'],
                        memory_share=read / known[1] if known else None)

    def translated() -> None:
        sizes = [*TINY_BENCH, '--sentences', '16', '--length', '4'] if part.tiny else ['--sentences', '1000']
        found = part.plumbs('bench', 'decode', *sizes, '--batch-tokens', '16384', '--precision', part.bf16)
        for beam in found['beams']:
            part.record(work='translation, 6+6 layers, d 512', precision=part.bf16, beam=beam['beam'],
                        tokens_per_second=beam['decode_tokens_per_second'])

    tiny = [*TINY_BENCH, '--length', '5', '--tokens', '4', '--batch', '1,3']
    rows = ['--batch', '1,8,64']
    for title, sizes in {'GPT-2, 124 million': gpt_2 + rows, 'its shape, 1.3 billion': larger + rows}.items():
        for precision in ['float32'] if part.tiny else ['float32', 'bf16']:
            part.attempt(f'{title}, {precision}', lambda: generated(title, tiny if part.tiny else sizes, precision))
    part.attempt('translation', translated)


def steps(part: Part) -> None:
    """Training steps of `plumb bench` beside PyTorch on the same weights and data."""
    for verb in ('train', 'decoder'):
        for precision in ['float32'] if part.tiny else ['float32', 'bf16']:
            def both() -> None:
                export = str(part.work / 'export')
                batch = TINY_BATCH if verb == 'train' else ['--texts', '2', '--length', '8']
                sizes = [*TINY_BENCH, *batch] if part.tiny else []
                runs = ['--runs', '2' if part.tiny else '10']
                found = part.plumbs('bench', verb, *sizes, *runs, '--precision', precision, '--export', export)
                part.record(work=verb, precision=precision, tool='plumb', seconds=found['seconds_per_step'])
                peer = part.peer('torch_train.py', '--export', export, *runs, works=('eager', 'compiled'))
                for tool, times in zip(('eager', 'compiled'), peer[1:]):
                    part.record(work=verb, precision=precision, tool=tool, seconds=times['seconds_per_step'])

            part.attempt(f'{verb}, {precision}', both)


PARTS = {work.__name__: work for work in (machine, tests, train, small, products, decoding, steps)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('part', choices=PARTS)
    parser.add_argument('--out', type=pathlib.Path, required=True, metavar='FILE', help='where the lines are appended')
    parser.add_argument('--work', type=pathlib.Path, required=True, metavar='DIR', help='an existing folder for files')
    parser.add_argument('--plumb', required=True, metavar='FILE')
    parser.add_argument('--tests', required=True, metavar='FILE', help='test_devices')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--tiny', action='store_true', help='tiny sizes in float32, to try this')
    parser.add_argument('--seconds', type=float, default=600, help='after which nothing new begins')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    part = Part(parser.parse_args())
    part.attempt(part.name, lambda: PARTS[part.name](part))


if __name__ == '__main__':
    main()
