#!/usr/bin/env python3
"""Writes the figures of scripts/gpu.sh into a page, as tables between the marks; what could not be measured follows."""
import argparse
import json
import pathlib
import sys

BEGIN, END = '<!-- gpu_page.py: begin -->', '<!-- gpu_page.py: end -->'
PARTS = ('machine', 'tests', 'train', 'small', 'products', 'decoding', 'steps')
TOOLS = {'plumb': 'Plumb', 'pytorch': 'PyTorch', 'eager': 'PyTorch, eager', 'compiled': 'PyTorch, compiled'}


def digits(number, unit=''):
    """Three digits: 1,234 or 12.3, with a unit; a dash for what was not measured."""
    if number is None:
        return '–'
    return (f'{number:,.0f}' if abs(number) >= 100 else f'{number:.3g}') + unit


def time_of(seconds):
    return digits(seconds, ' s') if seconds is None or seconds >= 1 else digits(1e3 * seconds, ' ms')


def share(part):
    return '–' if part is None else f'{100 * part:.0f}%'


def table(heads, rows):
    if not rows:
        return ''
    return '\n'.join('| ' + ' | '.join(cells) + ' |' for cells in [heads, ['---'] * len(heads), *rows])


def tool(line):
    compiled = line.get('compiled', '')
    return TOOLS[line['tool']] + (f', compiled {compiled}' if compiled else '')


def machine(lines):
    all_of = {key: value for line in lines for key, value in line.items()}
    if 'date' not in all_of:
        return ''
    parts = [f'One {all_of["gpu"]} ({all_of["memory"]}, driver {all_of["driver"]})' if 'gpu' in all_of else 'No GPU',
             f'{all_of["processors"]} processors']
    if 'torch' in all_of:
        parts.append(f'PyTorch {all_of["torch"]}')
    if 'plumb' in all_of:
        parts.append(all_of['plumb'])
    text = ', '.join(parts) + f', on {all_of["date"]}.'
    if 'copied_bytes_per_second' in all_of:
        products = digits(1e-12 * all_of['product_operations_per_second'])
        copies = digits(1e-12 * all_of['copied_bytes_per_second'])
        text += f' PyTorch multiplies large matrices at {products} TFLOP/s, and copies {copies} TB/s, read and written.'
    if all_of['size'] == 'tiny':
        text += ' **A dry run with tiny sizes: no figure below means anything.**'
    return text


def tests(lines):
    return '\n'.join(f'`tests/devices`: {line["passed"]} passed, {line["skipped"]} skipped, {len(line["failed"])} '
                     f'failed in {time_of(line["seconds"])}' + ''.join(f'; `{name}`' for name in line['failed']) + '.'
                     for line in lines)


def train(lines):
    return table(['training of a decoder', 'parameters', '', 'tokens/s', 'TFLOP/s', 'of the dense peak', 'memory'],
                 [[line['model'], digits(1e-6 * line['parameters'], ' million'), tool(line),
                   digits(line['tokens_per_second']), digits(1e-12 * line['operations_per_second']),
                   share(line['peak_share']), line.get('memory') or '–'] for line in lines])


def small(lines):
    return table(['small decoder', 'runs', '', 'steps/s in all', 'from start to end'],
                 [[tool(line), str(line['runs']), line['how'], digits(line['steps_per_second']),
                   time_of(line.get('seconds'))] for line in lines])


def products(lines):
    rows = []
    for line in lines:
        rows.append([line['size'], tool(line) + ', float32', time_of(line.get('gradient_seconds')),
                     time_of(line['seconds']), '–'])
        for key, name in (('bf16', 'bfloat16'), ('differences', 'differences of gradients in bfloat16')):
            if f'{key}_seconds' in line:
                rows.append([line['size'], f'PyTorch, {name}', '–', time_of(line[f'{key}_seconds']),
                             f'{line[f"{key}_error"]:.1g}'])
    return table(['Hessian-vector product', '', 'gradient', 'product', 'relative error'], rows)


def decoding(lines):
    return table(['decoding', 'precision', 'at once', 'tokens/s', 'of memory’s rate'],
                 [[line['work'], line['precision'], str(line['rows']) if 'rows' in line else f'beam {line["beam"]}',
                   digits(line['tokens_per_second']), share(line.get('memory_share'))] for line in lines])


def steps(lines):
    return table(['`plumb bench`', 'precision', '', 'step'],
                 [[line['work'], line['precision'], tool(line), time_of(line['seconds'])] for line in lines])


def text_of(lines):
    figures = [line for line in lines if 'note' not in line]
    blocks = [globals()[name]([line for line in figures if line['part'] == name]) for name in PARTS]
    notes = [f'- {line["part"]}: {line["note"]}' for line in lines if 'note' in line]
    if notes:
        blocks.append('Not measured:\n\n' + '\n'.join(notes))
    return '\n\n'.join(block for block in blocks if block)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('measurements', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--page', type=pathlib.Path, help='default: to standard output')
    options = parser.parse_args()
    text = text_of([json.loads(line) for line in options.measurements.read_text(encoding='utf-8').splitlines()])
    if options.page is None:
        print(text)
        return
    page = options.page.read_text(encoding='utf-8')
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f'gpu_page.py: {options.page} has no place for the tables: {BEGIN} and {END}')
    before, rest = page.split(BEGIN)
    options.page.write_text(f'{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}', encoding='utf-8')


if __name__ == '__main__':
    main()
