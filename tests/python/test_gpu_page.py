"""scripts/gpu_page.py: the figures of scripts/gpu.sh, made up here, as tables of a page."""

import json
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gpu_page.py"
LINES = [
    {"part": "machine", "date": "2030-01-02", "device": "cuda", "size": "full", "processors": 16},
    {"part": "machine", "gpu": "NVIDIA H200", "driver": "580.1", "memory": "143771 MiB"},
    {"part": "machine", "note": "the program: cannot be started"},
    {"part": "tests", "passed": 20, "skipped": 1, "failed": ["All/Steps.Train/cuda"], "seconds": 41.26},
    {"part": "train", "model": "0.5B", "tool": "plumb", "parameters": 518000000, "tokens_per_second": 123456.7,
     "operations_per_second": 4.5e14, "peak_share": 0.4548, "memory": "60000 MiB"},
    {"part": "train", "model": "0.5B", "tool": "pytorch", "compiled": "by block", "parameters": 518000000,
     "tokens_per_second": 99.5, "operations_per_second": 4e14, "peak_share": None},
    {"part": "small", "tool": "plumb", "runs": 16, "how": "MPS", "steps_per_second": 400.5, "seconds": 9.2},
    {"part": "products", "size": "0.6B", "tool": "pytorch", "gradient_seconds": 0.0156, "seconds": 0.0836,
     "bf16_seconds": 0.04, "bf16_error": 0.0068, "differences_seconds": 0.03, "differences_error": 0.072},
    {"part": "decoding", "work": "GPT-2", "precision": "bf16", "rows": 8, "tokens_per_second": 5000,
     "memory_share": 0.1},
    {"part": "decoding", "work": "translation", "precision": "bf16", "beam": 5, "tokens_per_second": 7000},
    {"part": "steps", "work": "train", "precision": "float32", "tool": "eager", "seconds": 0.0216},
]


def page_of(folder, lines, text="before\n<!-- gpu_page.py: begin -->\nold\n<!-- gpu_page.py: end -->\nafter\n"):
    measurements, page = folder / "measurements.jsonl", folder / "page.md"
    measurements.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page.write_text(text)
    done = subprocess.run([sys.executable, SCRIPT, measurements, "--page", page], capture_output=True, text=True)
    return done, page.read_text(encoding="utf-8")


def test_tables(tmp_path):
    done, page = page_of(tmp_path, LINES)
    assert done.returncode == 0, done.stderr
    assert page.startswith("before\n<!-- gpu_page.py: begin -->\nOne NVIDIA H200 (143771 MiB, driver 580.1), 16 processors")
    assert page.endswith("\n<!-- gpu_page.py: end -->\nafter\n") and "old" not in page
    for row in ("`tests/devices`: 20 passed, 1 skipped, 1 failed in 41.3 s; `All/Steps.Train/cuda`.",
                "| 0.5B | 518 million | Plumb | 123,457 | 450 | 45% | 60000 MiB |",
                "| 0.5B | 518 million | PyTorch, compiled by block | 99.5 | 400 | – | – |",
                "| Plumb | 16 | MPS | 400 | 9.2 s |",
                "| 0.6B | PyTorch, float32 | 15.6 ms | 83.6 ms | – |",
                "| 0.6B | PyTorch, bfloat16 | – | 40 ms | 0.007 |",
                "| 0.6B | PyTorch, differences of gradients in bfloat16 | – | 30 ms | 0.07 |",
                "| GPT-2 | bf16 | 8 | 5,000 | 10% |",
                "| translation | bf16 | beam 5 | 7,000 | – |",
                "| train | float32 | PyTorch, eager | 21.6 ms |",
                "- machine: the program: cannot be started"):
        assert row in page.splitlines()


def test_writing_again_changes_nothing(tmp_path):
    _, page = page_of(tmp_path, LINES)
    assert page_of(tmp_path, LINES, page)[1] == page


def test_nothing_measured(tmp_path):
    done, page = page_of(tmp_path, [{"part": "train", "note": "No time was left."}])
    assert done.returncode == 0 and "Not measured:\n\n- train: No time was left.\n" in page and "|" not in page


def test_page_without_a_place(tmp_path):
    done, page = page_of(tmp_path, LINES, "no marks\n")
    assert done.returncode == 1 and "has no place for the tables" in done.stderr and page == "no marks\n"
