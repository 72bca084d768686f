#!/usr/bin/env python3
"""Draws small mistakes in the library and counts how many of them the tests notice.

A mutation changes one line within a function of src/plumb: a sign, a bound by one, `<` for `<=`, a lost `not` or lock,
swapped arguments, another constant, … The draw depends on the seed and the sources alone, and gives every folder its
share. Each mutation is built and tested in a copy of the sources; what happened is appended to DIR/results.jsonl, where
an interrupted run goes on. A mutation that does not compile is replaced by the next of the same folder.

    scripts/mutations.py --list --seed 1 --count 30
    scripts/mutations.py --seed 1 --count 30 --tests full --build build-mutations

A survivor is either a missing test or a change that makes no difference; a person has to look.
"""
import argparse
import dataclasses
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = r'[A-Za-z_][\w.]*'
COMPARISONS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='}
# Lines whose mutations only change messages, capacities or what the compiler checks.
IDLE = re.compile(r'\b(throw|static_assert|reserve|warn\w*|log_\w+|print|cerr|clog|note|Error|using|case)\b|format\(')


@dataclasses.dataclass(frozen=True)
class Mutation:
    file: str
    line: int  # from 1
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        before, after = self.before.strip(), self.after.strip() or '(nothing)'
        return f'{self.file}:{self.line}: {self.kind}\n  - {before}\n  + {after}'


def blanked(text: str) -> str:
    """The text with spaces in place of comments, preprocessor lines and the contents of literals."""
    def blank(match: re.Match) -> str:
        found = match[0]
        keep = 1 if found[0] in '"\'' else 0
        inner = found[keep:len(found) - keep]
        return found[:keep] + re.sub(r'[^\n]', ' ', inner) + found[len(found) - keep:]

    return re.sub(r'(?s)R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])+\'|'
                  r'(?m:^[ \t]*#(?:\\\n|[^\n])*)', blank, text)


def lines_of_bodies(code: str) -> set[int]:
    """The numbers (from 1) of the lines that begin inside the body of a function."""
    inside, scopes, since, line = set(), [], '', 1
    for character in code:
        if character == '\n':
            line += 1
            if 'body' in scopes:
                inside.add(line)
        if character == '{':
            outside_parentheses = re.sub(r'\([^()]*\)', '()', re.sub(r'\([^()]*\)', '', since))
            if 'body' in scopes:
                scopes.append('block')
            elif re.search(r'\b(namespace|class|struct|union|enum)\b', outside_parentheses):
                scopes.append('scope')
            else:
                scopes.append('body' if re.search(r'\)|\boverride\b', since) else 'value')
            since = ''
        elif character == '}':
            if scopes:
                scopes.pop()
            since = ''
        elif character == ';':
            since = ''
        else:
            since += character
    return inside


def next_number(text: str) -> str:
    if text.isdigit():
        return str(int(text) + 1)
    return repr(2 * float(text.rstrip('fF'))) + text[len(text.rstrip('fF')):]


def changes(code: str) -> list[tuple[str, int, int, str]]:
    """(kind, begin, end, replacement) of every mutation of a line, given without its comments and literals."""
    found = []

    def every(kind, pattern, replacement, group=0):
        for match in re.finditer(pattern, code):
            found.append((kind, match.start(group), match.end(group), replacement(match)))

    every('sign', r'(?<=[\w)\]] )[+-](?= [\w(.-])', lambda m: '-' if m[0] == '+' else '+')
    every('sign', r'(?<=[\w)\]] )[+-]=(?= )', lambda m: '-=' if m[0] == '+=' else '+=')
    every('sign', r'(?<=return )-(?=[\w(])|(?<=[(=,] )-(?=[a-z(])|(?<=\()-(?=[a-z(])', lambda m: '')
    every('off by one', r' ([+-]) 1(?![\w.])', lambda m: f' {m[1]} 2' if m[1] == '+' else '')
    every('off by one', r'(?<=\bfor \()(?:int\w*|size_t|auto|std::\w+) \w+ = 0(?=;)', lambda m: m[0][:-1] + '1')
    every('comparison', r'(?<= )(<=|>=|<|>|==|!=)(?= )', lambda m: COMPARISONS[m[0]])
    every('logic', r'(?<= )(&&|\|\|)(?= )', lambda m: '||' if m[0] == '&&' else '&&')
    every('lost not', r'(?<![\w!=])!(?=[\w(])', lambda m: '')
    every('truth', r'\b(true|false)\b', lambda m: 'false' if m[0] == 'true' else 'true')
    every('min and max', r'\b(std::|at::|\.)(min|max)(imum)?(?=\()',
          lambda m: m[1] + ('max' if m[2] == 'min' else 'min') + (m[3] or ''))
    every('constant', r'(?<![\w.\[])(?:[2-9]|[1-9]\d+|\d*\.\d+(?:e-?\d+)?|\de-?\d+)(?:[fF])?(?![\w.\'])',
          lambda m: next_number(m[0]))
    every('swapped arguments', rf'(?<!\bmin)(?<!\bmax)(?<!swap)(?<=\w)\(({NAME}), ({NAME})(?=[,)])',
          lambda m: f'({m[2]}, {m[1]}')
    every('lost lock', r'^ *(?:const )?std::(?:lock_guard|scoped_lock|unique_lock)\b.*;$', lambda m: '')
    every('lost wait', r'^ *[\w.>-]+(?:\.|->)(?:notify_one|notify_all|barrier|join|wait|flush|close)\([^()]*\);$',
          lambda m: '')
    every('lost statement', r'^ *[\w.>\[\]-]+ [+*-]?= [^{}]*;$', lambda m: '')
    every('lost statement', rf'^ *(?!return\b|delete\b){NAME}(?:->{NAME})?\([^{{}}]*\);$', lambda m: '')
    every('loop', r'^ *(?:if \(.*\) )?(continue|break)(?=;)',
          lambda m: 'break' if m[1] == 'continue' else 'continue', 1)
    return [change for change in found if code[change[1]:change[2]] != change[3]]


def mutations_of(file: str, text: str) -> list[Mutation]:
    lines, code = text.split('\n'), blanked(text)
    bodies, result = lines_of_bodies(code), []
    for number, (line, bare) in enumerate(zip(lines, code.split('\n')), 1):
        bare = bare.rstrip()
        if number not in bodies or IDLE.search(bare):
            continue
        for kind, begin, end, replacement in changes(bare):
            if kind == 'sign' and '"' in bare:
                continue  # joins strings
            result.append(Mutation(file, number, kind, line, (line[:begin] + replacement + line[end:]).rstrip()))
    return result


def git(*arguments: str) -> bytes:
    return subprocess.run(['git', '-C', str(ROOT), *arguments], check=True, stdout=subprocess.PIPE).stdout


def library(ref: str) -> dict[str, str]:
    """The library's sources in a commit, by path."""
    with tarfile.open(fileobj=io.BytesIO(git('archive', ref, 'src/plumb'))) as archive:
        return {member.name: archive.extractfile(member).read().decode()
                for member in archive if member.name.endswith(('.cpp', '.h'))}


def draw(sources: dict[str, str], seed: int, count: int) -> list[list[Mutation]]:
    """For each of `count` places, the mutations to try in this order. Folders take turns, and so do kinds."""
    chance = random.Random(seed)
    folders: dict[str, dict[str, list[Mutation]]] = {}
    for file in sorted(sources):
        for mutation in mutations_of(file, sources[file]):
            folders.setdefault(file.split('/')[2], {}).setdefault(mutation.kind, []).append(mutation)
    turns: list[str] = []
    while len(turns) < count:
        turns += chance.sample(sorted(folders), len(folders))
    used: dict[str, int] = {}
    taken: set[tuple[str, int]] = set()

    def one(kinds: dict[str, list[Mutation]]) -> Mutation | None:
        for kind in sorted(kinds, key=lambda kind: (used.get(kind, 0), chance.random())):
            free = [mutation for mutation in kinds[kind] if (mutation.file, mutation.line) not in taken]
            if free:
                mutation = chance.choice(free)
                taken.add((mutation.file, mutation.line))
                used[kind] = used.get(kind, 0) + 1
                return mutation
        return None

    # All first choices are drawn before the substitutes, so a larger choice of substitutes changes none of them.
    rounds = [[one(folders[folder]) for folder in turns[:count]] for _ in range(8)]
    return [[mutation for mutation in place if mutation is not None] for place in zip(*rounds)]


class Tree:
    """A copy of a commit's sources with its own build directory."""

    def __init__(self, directory: pathlib.Path, ref: str, jobs: int, cmake_args: list[str]):
        self.source, self.binary, self.jobs = directory / 'source', directory / 'source' / 'build', jobs
        self.environment = dict(os.environ)
        if (ROOT.parent / 'shared').is_dir():
            self.environment.setdefault('PLUMB_SHARED', str(ROOT.parent / 'shared'))
        self.binary.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(git('archive', ref))) as archive:
            members = [member for member in archive if not member.isdir()]
            for member in members:
                self.put(member, archive)
            kept = {self.source / member.name for member in members}
        for path in self.source.rglob('*'):  # of another commit
            inside = path.relative_to(self.source).parts
            if path.is_file() and path not in kept and not {'build', 'node_modules', 'dist'}.intersection(inside):
                path.unlink()
        # The programs are not linked again when the library changes.
        subprocess.run(['cmake', '--preset', 'release', '-S', self.source, '-B', self.binary,
                        '-DPLUMB_BUILD_BENCHMARKS=OFF', '-DCMAKE_LINK_DEPENDS_NO_SHARED=ON', *cmake_args],
                       check=True, cwd=self.source, stdout=subprocess.DEVNULL)

    def put(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        """Writes a file that differs, so that only it is compiled again."""
        path = self.source / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.issym():
            if not path.is_symlink():
                path.symlink_to(member.linkname)
            return
        content = archive.extractfile(member).read()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
            path.chmod(member.mode)

    def build(self) -> bool:
        return subprocess.run(['cmake', '--build', self.binary, '--parallel', str(self.jobs)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def failures(self, which: str, first: str = '') -> list[str]:
        """The entries of the suite that fail. If any of the folder `first` fails, the others do not run."""
        label = ['-L', 'quick'] if which == 'quick' else []
        folder = f'^{first}(_|$)'
        for selection in [['-R', folder], ['-E', folder]] if first else [[]]:
            run = subprocess.run(['ctest', '--test-dir', self.binary, '--parallel', str(self.jobs), '--stop-on-failure',
                                  *label, *selection],
                                 env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if run.returncode != 0:
                return re.findall(r'^\s+\d+ - (\S+) \(', run.stdout, re.MULTILINE) or ['ctest']
        return []


def measure(tree: Tree, places: list[list[Mutation]], key: dict, which: str, results: pathlib.Path) -> list[dict]:
    def record(**found) -> dict:
        with results.open('a', encoding='utf-8') as file:
            file.write(json.dumps(key | found) + '\n')
        return found

    known = [json.loads(line) for line in results.read_text(encoding='utf-8').splitlines()] if results.exists() else []
    known = [entry for entry in known if all(entry.get(name) == value for name, value in key.items())]
    if not any(entry['result'] == 'unchanged' for entry in known):
        print('without a mutation …', flush=True)
        if not tree.build():
            sys.exit('mutations.py: the sources do not compile without a mutation')
        if failed := tree.failures(which):
            sys.exit(f'mutations.py: tests fail without a mutation: {", ".join(failed)}')
        record(result='unchanged')
    finished = {entry['place']: entry for entry in known if entry['result'] in ('caught', 'survived')}
    tried = {(entry['file'], entry['line'], entry['after']) for entry in known if 'file' in entry}
    for number, choices in enumerate(places, 1):
        for mutation in choices if number not in finished else []:
            if (mutation.file, mutation.line, mutation.after) in tried:
                continue  # did not compile
            print(f'{number}/{len(places)} {mutation}', flush=True)
            path = tree.source / mutation.file
            original = path.read_text(encoding='utf-8')
            lines = original.split('\n')
            lines[mutation.line - 1] = mutation.after
            begin = time.monotonic()
            path.write_text('\n'.join(lines), encoding='utf-8')
            try:
                built, built_at = tree.build(), time.monotonic()
                failed = tree.failures(which, mutation.file.split('/')[2]) if built else []
            finally:
                path.write_text(original, encoding='utf-8')
            result = ('caught' if failed else 'survived') if built else 'did not compile'
            print(f'  {result} {", ".join(failed)}', flush=True)
            entry = record(place=number, **dataclasses.asdict(mutation), result=result, caught_by=failed,
                           build_seconds=round(built_at - begin), test_seconds=round(time.monotonic() - built_at))
            if built:
                finished[number] = entry
                break
    return [finished[number] for number in sorted(finished) if number <= len(places)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=30, help='number of mutations (%(default)s)')
    parser.add_argument('--at', default='HEAD', metavar='REF', help='commit whose sources are mutated (%(default)s)')
    parser.add_argument('--list', action='store_true', help='print the mutations; build nothing')
    parser.add_argument('--tests', choices=['full', 'quick'], default='full',
                        help='all tests, or those of `make quick`')
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build-mutations', metavar='DIR')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--cmake-args', nargs=argparse.REMAINDER, default=[],
                        help='last: arguments of the configuration')
    options = parser.parse_args()

    places = draw(library(options.at), options.seed, options.count)
    if options.list:
        for number, choices in enumerate(places, 1):
            print(number, choices[0])
        return
    commit = git('rev-parse', options.at).decode().strip()
    directory = options.build.resolve()
    tree = Tree(directory, commit, options.jobs, options.cmake_args)
    key = {'at': commit, 'seed': options.seed, 'tests': options.tests}
    entries = measure(tree, places, key, options.tests, directory / 'results.jsonl')
    survivors = [entry for entry in entries if entry['result'] == 'survived']
    for entry in survivors:
        print('survived:', Mutation(*(entry[field.name] for field in dataclasses.fields(Mutation))))
    print(f'{len(entries) - len(survivors)} of {len(entries)} mutations caught by the {options.tests} tests')


if __name__ == '__main__':
    main()
