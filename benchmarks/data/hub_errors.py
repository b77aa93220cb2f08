"""What the Hugging Face hub's client raises, as one message that says what to do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from benchmarks.errors import DataError, FrugalbenchError


@contextlib.contextmanager
def hub_errors(whose: str, name: str, repo: str, *, place: str, otherwise: str) -> Iterator[None]:
    """Turns whatever the client raises into a `DataError`.

    Args:
        whose: what needs the files, for messages: "data set 'snli'".
        name: what `frugalbench fetch` calls it.
        repo: the repository.
        place: of the repository's page, below the hub's address.
        otherwise: what else than the hub can be used, as the end of a sentence.
    """
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    again = f"run `frugalbench fetch {name}` again"
    unreachable = (
        f"{whose}: {repo} is not here, and the hub cannot be reached ({{why}}). Go online (and unset "
        f"HF_HUB_OFFLINE), then run `frugalbench fetch {name}`; or {otherwise}."
    )
    try:
        yield
    except FrugalbenchError:
        raise
    except GatedRepoError as error:
        raise DataError(
            f"{whose}: {repo} is gated. Accept its terms at https://huggingface.co/{place}{repo}, "
            f"log in with `hf auth login` (or set HF_TOKEN), then {again}; or {otherwise}."
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        if not isinstance(error, LocalEntryNotFoundError):
            raise DataError(
                f"{whose}: the hub has no {repo}, or not the file or revision asked for "
                f"({_first_line(error)}). If it is private, log in with `hf auth login`, then {again}."
            ) from error
        raise DataError(unreachable.format(why=_first_line(error))) from error
    except Exception as error:  # the client's transport errors share no base
        raise DataError(unreachable.format(why=_first_line(error))) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
