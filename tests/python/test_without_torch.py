"""What the package does in an environment without PyTorch."""

import subprocess
import sys

CODE = '''
import sys


class Absent:
    """PyTorch is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
import plumb

verdicts = plumb.judge({"base": [2.31, 2.35, 2.33], "new": [2.08, 2.10, 2.07]})
assert verdicts["new"].outcome == "supported", verdicts
answer = plumb.gate("ledger.jsonl", "new", {"base": [2.31, 2.35, 2.33], "new": [2.08, 2.10, 2.07]})
assert answer.candidate == "new"
plumb.report(["Verdicts", verdicts], "page.html")
assert plumb.runs(".") == []
assert plumb.__version__ and plumb.Measured(1.0, None).value == 1 and "spectrum" in dir(plumb)
try:
    plumb.spectrum
except ImportError as error:
    assert "plumb.spectrum needs PyTorch" in str(error) and error.name == "torch"
else:
    raise AssertionError("plumb.spectrum is there")
assert not hasattr(plumb, "no_such_name")
assert "torch" not in sys.modules
'''


def test_runs_are_judged_and_reported(tmp_path):
    found = subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "page.html").stat().st_size > 0


def test_it_is_imported_with_the_first_measurement():
    code = "import sys, plumb; assert 'torch' not in sys.modules; plumb.Hessian; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
