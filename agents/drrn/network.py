"""The network: encoders of texts, and a value for a state with each of its actions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .features import StateActions, TextTable
from .settings import DrrnSettings


class Bag(nn.Module):
    """Mean of the words' vectors, then one layer."""

    def __init__(self, words: nn.Embedding, hidden: int) -> None:
        super().__init__()
        self._words = [words]  # shared: not a part of its own
        self.layer = nn.Linear(words.embedding_dim, hidden)

    def forward(self, texts: Sequence[np.ndarray]) -> Tensor:
        """One row per text."""
        lengths = np.fromiter((len(text) for text in texts), np.int64, len(texts))
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        mean = nn.functional.embedding_bag(
            torch.from_numpy(np.concatenate(texts)),
            self._words[0].weight,
            torch.from_numpy(starts),
            mode="mean",
        )
        return torch.relu(self.layer(mean))


class Gru(nn.Module):
    """Last state of a GRU over the words."""

    def __init__(self, words: nn.Embedding, hidden: int) -> None:
        super().__init__()
        self._words = [words]
        self.layer = nn.GRU(words.embedding_dim, hidden, batch_first=True)

    def forward(self, texts: Sequence[np.ndarray]) -> Tensor:
        """One row per text."""
        lengths = torch.tensor([len(text) for text in texts])
        rows = nn.utils.rnn.pad_sequence([torch.from_numpy(text) for text in texts], True)
        packed = nn.utils.rnn.pack_padded_sequence(
            self._words[0](rows), lengths, batch_first=True, enforce_sorted=False
        )
        return self.layer(packed)[1][0]


class DrrnNetwork(nn.Module):
    """Values of actions: both sides encoded apart, then one hidden layer over the two.

    Args:
        settings: Its shape.
    """

    def __init__(self, settings: DrrnSettings) -> None:
        super().__init__()
        self.settings = settings
        self.words = nn.Embedding(settings.buckets, settings.embedding)
        kind = Bag if settings.encoder == "bag" else Gru
        self.texts = nn.ModuleList(kind(self.words, settings.hidden) for _ in range(3))
        self.action = kind(self.words, settings.hidden)
        self.of_state = nn.Linear(3 * settings.hidden, settings.hidden)
        self.of_action = nn.Linear(settings.hidden, settings.hidden, bias=False)
        self.value = nn.Linear(settings.hidden, 1)

    def book(self) -> TextTable:
        """Return an empty book of texts as this network reads them."""
        return TextTable(self.settings.buckets, self.settings.encoder == "bag")

    def forward(self, book: TextTable, situations: Sequence[StateActions]) -> list[Tensor]:
        """Per situation one value for each of its actions.

        Every text goes through its encoder once, however often it stands in the batch.
        """
        parts = [
            self._encoded(book, encoder, np.asarray([s.texts[slot] for s in situations]))
            for slot, encoder in enumerate(self.texts)
        ]
        states = self.of_state(torch.cat(parts, dim=1))
        counts = [len(s.actions) for s in situations]
        flat = np.concatenate([s.actions for s in situations])
        distinct, places = np.unique(flat, return_inverse=True)
        actions = self.of_action(self.action([book.words(int(a)) for a in distinct]))
        owners = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        both = torch.relu(states[owners] + actions[torch.from_numpy(places)])
        return list(self.value(both).squeeze(1).split(counts))

    def _encoded(self, book: TextTable, encoder: nn.Module, numbers: np.ndarray) -> Tensor:
        distinct, places = np.unique(numbers, return_inverse=True)
        return encoder([book.words(int(n)) for n in distinct])[torch.from_numpy(places)]
