"""Lanczos processes over PyTorch's vectors. The recurrence and what it tells about a spectrum are Plumb's, in C++."""

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from . import _plumb
from ._plumb import Error

Progress: TypeAlias = Callable[[int, int, str], object]


class Lanczos:
    """One Lanczos process, which keeps its basis orthogonal: it takes products A·direction until recurrence.done."""

    def __init__(self, start: Tensor, steps: int, tolerance: float = 0.0, directory: str = "") -> None:
        """start: (n), any length but 0. directory: the basis is in a file there instead of in memory."""
        self.recurrence = _plumb.Recurrence(len(start), steps, tolerance, torch.finfo(start.dtype).eps)
        self._vectors: list[Tensor] = []
        self._file = _file(directory, min(steps, len(start)) * start.nbytes, start.device) if directory else None
        length = math.sqrt(_gram_schmidt([], [], False, start.contiguous())[-1])
        if not length > 0:
            raise Error("Lanczos cannot start from a zero vector")
        if not self.recurrence.done:
            self._append(start, 1 / length)

    @property
    def direction(self) -> Tensor:
        """The vector (n) whose product is needed next."""
        return self._vectors[-1]

    def advance(self, product: Tensor) -> None:
        """Takes the product A·direction, and overwrites it."""
        w = product.contiguous()
        if w.data_ptr() == self.direction.data_ptr():
            w = w.clone()
        # Classical Gram–Schmidt twice, which is sufficient (Giraud et al. 2005), in three passes instead of four: the second
        # products are computed while their block of vectors is in the cache.
        first = _gram_schmidt(self._vectors, [], True, w)[:-1]
        second = _gram_schmidt(self._vectors, first, True, w)[:-1]
        norm = math.sqrt(_gram_schmidt(self._vectors, second, False, w)[-1])
        self.recurrence.advance([a + b for a, b in zip(first, second)], norm)
        if not self.recurrence.done:
            self._append(w, 1 / norm)

    def _append(self, w: Tensor, scale: float) -> None:
        if self._file is None:
            vector = torch.empty_like(w)
        else:
            vector = torch.frombuffer(self._file, dtype=w.dtype, count=len(w), offset=len(self._vectors) * w.nbytes)
        self._vectors.append(torch.mul(w, scale, out=vector))


def largest_eigenvalue(multiply: Callable[[Tensor], Tensor], start: Tensor, steps: int) -> tuple[float, float]:
    """The largest eigenvalue, and how far one may lie from it, by at most `steps` steps from the start vector (n): they end as
    soon as that residual is a hundredth of the value."""
    process = Lanczos(start, steps)
    while True:
        process.advance(multiply(process.direction))
        value, residual = process.recurrence.largest()
        if process.recurrence.done or residual <= 0.01 * abs(value):
            return value, residual


def spectra(multiply: Callable[[list[Tensor], list[int]], list[Tensor]], sizes: Sequence[int], like: Tensor, planned: int, *,
            steps: int, probes: int, seed: int, tolerance: float, directory: str, sigma: float,
            progress: Progress | None) -> list[dict[str, Any]]:
    """The arguments of `plumb.Spectrum` that are measured, of several symmetric matrices, which all advance one step at a time.

    multiply: vectors and the places of their matrices, to the products. sizes: rows of each. like: a tensor of the vectors' type
    and device. planned: steps of a probe, for the progress. The rest is as of `plumb.Hessian.spectrum`.
    """
    if min(steps, probes) < 1:
        raise Error(f"invalid options: {steps} steps, {probes} probes\nboth must be at least 1")
    ended: list[list[_plumb.Recurrence]] = [[] for _ in sizes]
    for probe in range(probes):
        processes = [Lanczos(random_probe(size, like, seed, probe), steps, tolerance, directory) for size in sizes]
        done = probe * planned
        while running := [place for place, process in enumerate(processes) if not process.recurrence.done]:
            products = multiply([processes[place].direction for place in running], running)
            while running:  # products are freed one by one
                processes[running[-1]].advance(products.pop())
                first = running.pop()
            done += 1
            if progress:
                progress(done, probes * planned, processes[first].recurrence.known())
        for results, process in zip(ended, processes):
            results.append(process.recurrence)
    return [_plumb.spectrum_of_probes(results, size, sigma) for results, size in zip(ended, sizes)]


def dense_spectrum(multiply: Callable[[Tensor], Tensor], n: int, like: Tensor, sigma: float,
                   progress: Progress | None) -> dict[str, Any]:
    """The same by products with all unit vectors: all eigenvalues of the matrix's symmetric part. Each is within half the norm
    of A − Aᵀ of one of A (Kahan 1975)."""
    _plumb.require_dense_size(n)
    matrix, unit = torch.empty((n, n), dtype=torch.float64), like.new_zeros(n)
    for j in range(n):
        unit[j] = 1
        matrix[j] = multiply(unit)
        unit[j] = 0
        if progress:
            progress(j + 1, n, "eigenvalues" if j + 1 == n else "")
    if not matrix.isfinite().all():
        raise Error("the Hessian is not finite\nthe loss or its derivatives overflow at these parameters")
    difference = matrix - matrix.T
    values = torch.linalg.eigvalsh(matrix - 0.5 * difference)
    return _plumb.spectrum_of_eigenvalues(values.tolist(), 0.5 * difference.norm().item(), sigma)


def random_probe(n: int, like: Tensor, seed: int, index: int) -> Tensor:
    """A start vector of elements ±1/√n, the program's for this seed and index on every device; like: of its type and device."""
    signs = torch.empty(n, dtype=like.dtype)
    _plumb.write_signs(signs.data_ptr(), like.dtype == torch.float64, n, seed, index)
    return signs.to(like.device)


def _gram_schmidt(vectors: list[Tensor], subtract: list[float], products: bool, w: Tensor) -> list[float]:
    """w ← w − Σ subtract·v if there is something to subtract; then the products v·w (zeros unless `products`), followed by w·w,
    in float64."""
    if w.device.type == "cpu":
        return _plumb.gram_schmidt([vector.data_ptr() for vector in vectors], subtract, products, w.numel(), w.data_ptr(),
                                   w.dtype == torch.float64, torch.get_num_threads())
    rest = w.double()
    for factor, vector in zip(subtract, vectors):
        rest = rest - factor * vector.double()
    if subtract:
        rest = w.copy_(rest).double()  # the sums use w as stored
    sums = [torch.dot(vector.double(), rest) for vector in vectors if products] + [torch.dot(rest, rest)]
    return [0.0] * (len(vectors) + 1 - len(sums)) + [float(value) for value in torch.stack(sums).tolist()]


def _file(directory: str, size: int, device: torch.device) -> mmap.mmap:
    """An unlinked file there, which disappears with its last vector or the process."""
    if device.type != "cpu":
        raise Error(f"the vectors of a basis on {device} cannot be in a file\n"
                    "leave the directory of the basis out, or measure on the CPU")
    try:
        file = tempfile.TemporaryFile(prefix="plumb-basis-", dir=directory)
    except OSError as error:
        raise Error(f"{directory}: cannot create a file there: {error.strerror}") from error
    with file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise Error(f"{directory}: not enough space for {size / 2**30:.1f} GiB of basis vectors\n"
                        "use fewer steps or another directory") from error
