"""The machine on which the figures were measured."""
import os
import pathlib
import platform
import re


def _first(path: str, pattern: str) -> str | None:
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(encoding='utf-8'), re.MULTILINE)
    except OSError:
        return None
    return found.group(1) if found else None


def describe() -> dict[str, str | int]:
    """Processor, cores that this process may use, memory and operating system."""
    kilobytes = int(_first('/proc/meminfo', r'^MemTotal:\s*(\d+)') or 0)
    name = platform.freedesktop_os_release().get('PRETTY_NAME') if hasattr(platform, 'freedesktop_os_release') else None
    flags = (_first('/proc/cpuinfo', r'^flags\s*:\s*(.*)') or '').split()
    units = [title for flag, title in [('avx2', 'AVX2'), ('avx512f', 'AVX-512'), ('amx_tile', 'AMX')] if flag in flags]
    return {
        'processor': _first('/proc/cpuinfo', r'^model name\s*:\s*(.*)') or platform.machine(),
        'instructions': units[-1] if len(units) < 3 else 'AVX-512 and AMX',
        'cores': len(os.sched_getaffinity(0)),
        'memory_gib': round(kilobytes / 2 ** 20),
        'system': name or platform.platform(),
    }


def sentence(machine: dict[str, str | int]) -> str:
    cores = machine['cores']
    return (f'{machine["processor"]} ({machine["instructions"]}), {cores} core{"" if cores == 1 else "s"}, '
            f'{machine["memory_gib"]} GiB of memory, {machine["system"]}')
