"""The vocabulary: words of the training texts in use, and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from benchmarks.data.identity import ENCODING, UNK

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


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
    """Token ids of each text at full length, and whether it held no known token.

    Such a text (an empty one, say) becomes a single [UNK], so that no input is empty.
    """
    encoded: list[list[int]] = []
    empty: list[bool] = []
    for item in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        ids = item.ids
        empty.append(all(token == UNK for token in ids))
        encoded.append([UNK] if empty[-1] else ids)
    return encoded, empty
