#!/usr/bin/env python3
"""Lays out JSON documents for docs/findings: findings.py FILE...

A study's results.json, or any other JSON, keeps its values and their order. What fits in a line of 2,000 characters
stands in one; of what does not, each row of a table, claim and series gets a line of its own, while members of an
object, numbers and short objects share lines.
"""
import json
import pathlib
import sys

WIDTH = 2000
SHORT = 200  # an object in a list that shares its line


def layout(value, indent=0):
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent < WIDTH or not isinstance(value, (dict, list)):
        return line
    if isinstance(value, dict):
        items = [f'{json.dumps(key, ensure_ascii=False)}: {layout(each, indent + 1)}' for key, each in value.items()]
    else:
        items = [layout(each, indent + 1) for each in value]
    lines = [items[0]]
    for each, item in zip(list(value)[1:], items[1:]):
        shares = isinstance(value, dict) or not isinstance(each, list) and len(item) <= SHORT
        if shares and '\n' not in lines[-1] + item and indent + len(lines[-1]) + len(item) + 4 < WIDTH:
            lines[-1] += ', ' + item
        else:
            lines.append(item)
    margin = '\n' + ' ' * (indent + 1)
    return line[0] + margin + (',' + margin).join(lines) + margin[:-1] + line[-1]


for path in map(pathlib.Path, sys.argv[1:]):
    path.write_text(layout(json.loads(path.read_text())) + '\n')
