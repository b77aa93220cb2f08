"""A wheel also carries the cards, suites, claims and references that a clone has beside the code."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

RESOURCES = {
    "suites": "benchmarks/suites",
    "claims": "benchmarks/claims",
    "datasets": "datasets",
    "weights": "weights",
    "reference": "reports/reference",
}
"""Folder of `benchmarks/_data` to the folder of the checkout; see `benchmarks.paths`."""


class BuildWithResources(build_py):
    """Copies the resources into a wheel; an editable installation reads them where they are."""

    def run(self) -> None:
        """Builds as usual, then copies."""
        super().run()
        if not self.editable_mode:
            for name, folder in RESOURCES.items():
                target = Path(self.build_lib, "benchmarks", "_data", name)
                shutil.copytree(folder, target, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithResources})
