"""The vocabulary: words of the training texts in use and of nothing else, or a pretrained one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from benchmarks.data.identity import ENCODING, PAD, PIECES, UNK
from benchmarks.data.weights import find_weights, vocabulary_card
from benchmarks.data.weights_files import read_member
from benchmarks.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def train_vocabulary(texts: Iterable[str]) -> Tokenizer:
    """Learns a vocabulary from lower-cased texts; the same texts give the same vocabulary.

    Ids 0, 1 and 2 are [PAD], [UNK] and [SEP].
    """
    # one thread: nothing to gain on texts this small, and no warning from forked workers
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    # whole words, not word pieces: the library's word-piece trainer gives another vocabulary in each
    # process, and on R8 and Rotten Tomatoes' validation rows words were as good
    tokenizer = Tokenizer(models.WordLevel(unk_token=ENCODING["special"][UNK]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordLevelTrainer(
        vocab_size=ENCODING["size"],
        min_frequency=ENCODING["min_frequency"],
        special_tokens=ENCODING["special"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def pretrained_vocabulary(weights: str) -> Tokenizer:
    """The lower-cased word pieces of pretrained weights.

    A text that spells a special token gets the pieces of its spelling, not the token.

    Args:
        weights: name of their card.

    Raises:
        UsageError: no such card.
        DataError: its package is not fetched, altered, or without such a vocabulary.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    card = vocabulary_card(find_weights(weights))
    pieces = read_member(card, card.pieces.path or "").decode("utf-8").split("\n")
    ids = {piece.rstrip("\r"): index for index, piece in enumerate(pieces) if piece}
    absent = [token for token in PIECES["special"] if token not in ids]
    if len(ids) != card.pieces.size or absent or ids[PIECES["special"][PAD]] != PAD:
        raise DataError(
            f"weights '{card.name}': {card.pieces.path} has {len(ids)} different pieces, the "
            f"card says {card.pieces.size}" + (f"; it lacks {', '.join(absent)}" if absent else "")
        )
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=PIECES["special"][UNK]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=PIECES["lower_case"])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def token_id(tokenizer: Tokenizer, token: str) -> int:
    """Id of a token that the vocabulary has."""
    ids: dict[str, int] = tokenizer.get_vocab()
    return ids[token]


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
    """Token ids of each text at full length, and whether it held no known token.

    Such a text (an empty one, say) becomes a single [UNK], so that no input is empty.
    """
    unk = token_id(tokenizer, ENCODING["special"][UNK])
    encoded: list[list[int]] = []
    empty: list[bool] = []
    for item in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        ids = item.ids
        empty.append(all(token == unk for token in ids))
        encoded.append([unk] if empty[-1] else ids)
    return encoded, empty
