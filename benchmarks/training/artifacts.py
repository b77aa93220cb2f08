"""Trained weights and what is known of them, one folder per key, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from benchmarks.errors import DiskError, StorageError
from benchmarks.training.record import TrainingRecord, ValidationScores
from models.config import TrainedSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

SCHEMA_VERSION = 1
_DESCRIPTION = "artifact.json"
_WEIGHTS = "weights.safetensors"


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """One finished training; reading it needs no torch, except for `state_dict`.

    Attributes:
        key: its address, a hash of everything that decides the weights.
        folder: where it lies.
        declared: the declared values of the point that was trained.
        config: the model's full configuration.
        weights_sha256: of the weights file.
        record: the epochs.
        validation: scores of the finished model.
        summary: what dependent models need to know.
        torch: version that trained.
        created: UTC, ISO 8601.
    """

    key: str
    folder: Path
    declared: dict[str, Any]
    config: dict[str, Any]
    weights_sha256: str
    record: TrainingRecord
    validation: ValidationScores
    summary: TrainedSummary
    torch: str
    created: str

    def state_dict(self) -> dict[str, Tensor]:
        """The weights by name.

        Raises:
            StorageError: the file is missing, unreadable or altered.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            return load(self._verified())
        except SafetensorError as error:
            raise _damaged(self.folder / _WEIGHTS, str(error)) from error

    def _verified(self) -> bytes:
        path = self.folder / _WEIGHTS
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _damaged(path, error.strerror or str(error)) from error
        found = hashlib.sha256(content).hexdigest()
        if found != self.weights_sha256:
            raise _damaged(path, f"its SHA-256 is {found}, not {self.weights_sha256}")
        return content


class ArtifactStore:
    """Artifacts below one folder: `KEY[:2]/KEY/{weights.safetensors, artifact.json}`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, key: str) -> Path:
        """Where the artifact of this key lies, or would lie."""
        return self.root / key[:2] / key

    def has(self, key: str) -> bool:
        """Whether a finished artifact is there; its content is not looked at."""
        return (self.folder(key) / _DESCRIPTION).is_file()

    def load(self, key: str) -> Artifact:
        """Reads an artifact and checks its weights' SHA-256.

        Raises:
            StorageError: missing, damaged, or of another schema version.
        """
        folder = self.folder(key)
        path = folder / _DESCRIPTION
        try:
            values = json.loads(path.read_text("utf-8"))
            version = values["schema_version"]
            if version != SCHEMA_VERSION:
                raise _damaged(path, f"schema_version is {version}, this program reads 1")
            artifact = Artifact(
                key=key,
                folder=folder,
                declared=values["declared"],
                config=values["config"],
                weights_sha256=values["weights_sha256"],
                record=TrainingRecord.from_json(values["epochs"]),
                validation=ValidationScores(**values["validation"]),
                summary=TrainedSummary(**values["summary"]),
                torch=values["torch"],
                created=values["created"],
            )
        except OSError as error:
            raise _damaged(path, error.strerror or str(error)) from error
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from error
        artifact._verified()  # noqa: SLF001
        return artifact

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Holds the key, so that no two processes train it; waits for whoever holds it now.

        Remains of an interrupted write of this key are removed.

        Raises:
            StorageError: the folder cannot be written to.
        """
        folder = self.folder(key)
        lock = FileLock(folder.with_name(f"{key}.lock"))
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise _unwritable(folder, error) from error
        try:
            for remains in folder.parent.glob(f".{key}.*"):
                shutil.rmtree(remains, ignore_errors=True)
            yield
        finally:
            lock.release()

    def save(
        self,
        key: str,
        *,
        declared: Mapping[str, Any],
        config: Mapping[str, Any],
        state: Mapping[str, Tensor],
        record: TrainingRecord,
        validation: ValidationScores,
        summary: TrainedSummary,
    ) -> Artifact:
        """Writes an artifact; call it while holding `lock(key)`.

        Raises:
            StorageError: the disk is full or read-only; nothing half-written stays under the key.
        """
        import torch
        from safetensors.torch import save

        content = save({name: tensor.detach().contiguous() for name, tensor in state.items()})
        values = {
            "schema_version": SCHEMA_VERSION,
            "key": key,
            "declared": dict(declared),
            "config": dict(config),
            "weights_sha256": hashlib.sha256(content).hexdigest(),
            "epochs": record.to_json(),
            "validation": asdict(validation),
            "summary": asdict(summary),
            "torch": torch.__version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        folder = self.folder(key)
        beside = folder.with_name(f".{key}.{os.getpid()}")
        try:
            beside.mkdir(parents=True)
            (beside / _WEIGHTS).write_bytes(content)
            (beside / _DESCRIPTION).write_text(json.dumps(values, indent=1) + "\n", "utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            beside.rename(folder)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise _unwritable(folder, error) from error
        return self.load(key)


def _damaged(path: Path, why: str) -> StorageError:
    # records keep this text, and no absolute path: named from the runs folder on
    folder = "/".join(path.parent.parts[-3:])
    return StorageError(
        f"{folder}/{path.name} cannot be used: {why}. Delete the folder {folder} inside the runs "
        "folder and run again."
    )


def _unwritable(folder: Path, error: OSError) -> DiskError:
    return DiskError(
        f"cannot write {error.filename or folder}: {error.strerror or error} (errno "
        f"{error.errno}). Make room or make it writable, or let FRUGALBENCH_RUNS name another "
        "folder; what is finished is kept."
    )
