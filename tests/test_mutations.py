"""The tests of the theorem fail for a wrong theory."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_tests_of_the_theorem_notice_every_mutation():
    command = [sys.executable, str(ROOT / "tools" / "mutate_theorem.py"), "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "every mutation was noticed" in result.stdout
