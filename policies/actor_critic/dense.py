"""Multilayer perceptrons in NumPy, with gradients by hand.

For small networks most of an update by autograd is spent around the arithmetic. This computes the
same with a few array operations.

Gradients are the textbook's. Let ``d`` be the gradient of the loss by a layer ``h = f(x W' + b)``:
that by the sum is ``e = d f'``, by ``W`` it is ``e' x``, by ``b`` the sum of ``e`` over rows, by
``x`` it is ``e W``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse, special
from torch import Tensor, nn
from torch.nn import functional

from policies.actor_critic.distributions import LOG_2PI, NEVER, ActionLayout, Boxes, Choices
from rollout.api import Array, Columns
from rollout.api.masks import legal_values

_NUMBERS, _SYMBOLS, _SHARES, _HIDDEN = "numbers", "symbols/", "shares/", "hidden"


class DenseNetwork:
    """An ``ActorCritic`` of linear layers, whose weights it shares.

    Attributes:
        weights: of all parameters, in their order, ``(n,)``; the network's are views of it.
        gradient: likewise, what ``backward`` found last.

    Args:
        network: without a memory, of numbers, tanh or relu, and actions that are not squashed.
    """

    def __init__(self, network: Any) -> None:
        self._network, self.layout = network, network.layout
        parameters = list(network.parameters())
        self.weights = _flat(parameters)
        self.gradient = np.zeros_like(self.weights)
        found, own = torch.from_numpy(self.gradient), [p.numel() for p in parameters]
        views = [v.view_as(p) for v, p in zip(torch.split(found, own), parameters, strict=True)]
        self._gradients = dict(zip(parameters, views, strict=True))
        self._actor = _Layers(network.actor, self._gradients)
        self._critic = None if network.critic is None else _Layers(network.critic, self._gradients)
        self._policy = _Linear(network.policy_head, self._gradients)
        self._value = _Linear(network.value_head, self._gradients)
        self._hidden: NDArray[np.bool_] | None = None
        discrete = self.layout.discrete
        self._groups = [] if discrete is None else _groups(discrete)

    def prepare(self, observations: Mapping[str, Array]) -> Columns:
        """Returns what ``forward`` reads, for any number of rows: once for all its calls."""
        encoder = self._network.actor.encoder
        columns, numbers, tables = Columns(), list[Tensor](), 0
        with torch.no_grad():
            for key, part in zip(encoder.keys, encoder.parts, strict=True):
                values = torch.from_numpy(observations[key])
                if not hasattr(part, "table"):
                    numbers.append(part(values))
                    continue
                index, shares = part.rows(values)
                columns[f"{_SYMBOLS}{tables}"] = index.to(torch.int32).numpy()
                if shares is not None:
                    columns[f"{_SHARES}{tables}"] = shares.numpy()
                tables += 1
        if numbers:
            columns[_NUMBERS] = torch.cat(numbers, 1).numpy()
        if self._network.masks:
            count = len(observations[self._network.masks[0][0]])
            hidden = np.zeros((count, self.layout.logits + self.layout.dims), bool)
            for key, place, sizes in self._network.masks:
                hidden[:, place] = ~legal_values(observations[key], sizes)
            columns[_HIDDEN] = hidden
        return columns

    def forward(self, prepared: Mapping[str, Array]) -> tuple[Array, Array]:
        """Returns outputs ``(B, n)`` and values ``(B,)``, and keeps what ``backward`` needs."""
        features = self._actor.forward(prepared)
        judged = features if self._critic is None else self._critic.forward(prepared)
        outputs, value = self._policy.forward(features), self._value.forward(judged)[:, 0]
        self._hidden = hidden = prepared.get(_HIDDEN)
        if hidden is not None:
            outputs[hidden] = NEVER
        if self.layout.dims:
            log_std = self._network.log_std.detach().numpy()
            wide = np.broadcast_to(log_std, (len(outputs), len(log_std)))
            outputs = np.concatenate([outputs, wide], 1)
        return outputs, value

    def backward(self, by_outputs: Array, by_value: Array) -> None:
        """Sets the gradients of the parameters, given those of the loss by the last results.

        Args:
            by_outputs: ``(B, n)``.
            by_value: ``(B,)``.
        """
        dims = self.layout.dims
        if dims:
            deviations = torch.from_numpy(by_outputs[:, -dims:].sum(0))
            self._gradients[self._network.log_std].copy_(deviations)
            by_outputs = by_outputs[:, :-dims]
        if self._hidden is not None:
            by_outputs = np.where(self._hidden, by_outputs.dtype.type(0), by_outputs)
        by_features = self._policy.backward(by_outputs)
        by_judged = self._value.backward(by_value[:, None])
        if self._critic is None:
            by_features += by_judged
        else:
            self._critic.backward(by_judged)
        self._actor.backward(by_features)
        for parameter, gradient in self._gradients.items():
            parameter.grad = gradient

    def distribution(self, outputs: Array) -> DenseDistribution:
        """Returns the distribution over actions that outputs ``(B, n)`` represent."""
        return DenseDistribution(self.layout, self._groups, outputs)


def _flat(parameters: Sequence[nn.Parameter]) -> Array:
    """Returns the vector of which parameters are views; makes them such where they are not."""
    own, at = parameters[0].detach(), 0
    storage = own.untyped_storage().data_ptr()
    for parameter in parameters:
        inside = parameter.untyped_storage().data_ptr() == storage
        if not (inside and parameter.storage_offset() == at and parameter.is_contiguous()):
            weights = nn.utils.parameters_to_vector(parameters).detach()
            nn.utils.vector_to_parameters(weights, parameters)
            return weights.numpy()
        at += parameter.numel()
    return own.as_strided((at,), (1,)).numpy()


class _Linear:
    """A linear layer."""

    def __init__(self, layer: Any, gradients: Mapping[Any, Tensor]) -> None:
        self._weight, self._bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        self._by_weight = gradients[layer.weight].numpy()
        self._by_bias = gradients[layer.bias].numpy()
        self._seen: Array = np.zeros(0)

    def forward(self, rows: Array) -> Array:
        self._seen = rows
        out: Array = rows @ self._weight.T
        out += self._bias
        return out

    def backward(self, gradient: Array, *, first: bool = False) -> Array:
        """Sets the gradients; returns that by its input, or nothing of use for the ``first``."""
        np.matmul(gradient.T, self._seen, out=self._by_weight)
        # A fifth of the time of a sum over the first axis.
        np.matmul(np.ones(len(gradient), gradient.dtype), gradient, out=self._by_bias)
        if first:
            return gradient
        out: Array
        if gradient.shape[1] > 1:
            out = gradient @ self._weight
        else:  # a tenth of the time of a product of matrices
            out = (torch.from_numpy(gradient) * torch.from_numpy(self._weight)).numpy()
        return out


class _Table:
    """The vectors of a column of symbols, summed: ``network.Symbols``.

    It is a linear layer of a sparse matrix, which has a row for each observation.
    """

    def __init__(self, table: Any, gradients: Mapping[Any, Tensor]) -> None:
        self._table, self._by_table = table.detach(), gradients[table].numpy()
        self._seen: tuple[Array, Array | None] = np.zeros((0, 0)), None

    def forward(self, index: Array, shares: Array | None) -> Array:
        self._seen = index, shares
        weights = None if shares is None else torch.from_numpy(shares)
        out: Array = functional.embedding_bag(
            torch.from_numpy(index), self._table, mode="sum", per_sample_weights=weights
        ).numpy()
        return out

    def backward(self, gradient: Array) -> None:
        index, shares = self._seen
        count, places = index.shape
        weights = np.ones(index.size, gradient.dtype) if shares is None else shares.reshape(-1)
        ends = np.arange(0, index.size + 1, places, dtype=index.dtype)
        shape = count, len(self._by_table)
        rows = sparse.csr_array((weights, index.reshape(-1), ends), shape=shape)
        self._by_table[...] = rows.T @ gradient


class _First:
    """The first layer, of numbers and symbols: ``network.Encoder``."""

    def __init__(self, encoder: Any, gradients: Mapping[Any, Tensor]) -> None:
        linear = encoder.linear
        self._linear = None if linear is None else _Linear(linear, gradients)
        tables = [part.table for part in encoder.parts if hasattr(part, "table")]
        self._tables = [_Table(table, gradients) for table in tables]

    def forward(self, prepared: Mapping[str, Array]) -> Array:
        parts = [] if self._linear is None else [self._linear.forward(prepared[_NUMBERS])]
        for number, table in enumerate(self._tables):
            shares = prepared.get(f"{_SHARES}{number}")
            parts.append(table.forward(prepared[f"{_SYMBOLS}{number}"], shares))
        total = parts[0]
        for own in parts[1:]:
            total += own
        return total

    def backward(self, gradient: Array) -> None:
        if self._linear is not None:
            self._linear.backward(gradient, first=True)
        for table in self._tables:
            table.backward(gradient)


class _Layers:
    """The layers of a ``network.Body``, each with its activation."""

    def __init__(self, body: Any, gradients: Mapping[Any, Tensor]) -> None:
        self._first = _First(body.encoder, gradients)
        own = [m for m in body.layers if isinstance(m, nn.Linear)]
        self._layers = [_Linear(layer, gradients) for layer in own]
        self._tanh = isinstance(body.encoder.activation, nn.Tanh)
        self._after: list[Array] = []

    def forward(self, prepared: Mapping[str, Array]) -> Array:
        rows = self._active(self._first.forward(prepared))
        after = [rows]
        for layer in self._layers:
            rows = self._active(layer.forward(rows))
            after.append(rows)
        self._after = after
        return rows

    def _active(self, rows: Array) -> Array:
        if self._tanh:
            _tanh(rows)
        else:
            np.maximum(rows, 0, out=rows)
        return rows

    def backward(self, gradient: Array) -> None:
        for number in reversed(range(len(self._after))):
            after = self._after[number]
            if self._tanh:
                slope = after * after
                np.subtract(1, slope, out=slope)
                gradient = np.multiply(slope, gradient, out=slope)
            else:
                gradient = gradient * (after > 0)
            if number:
                gradient = self._layers[number - 1].backward(gradient)
        self._first.backward(gradient)


def _tanh(rows: Array) -> None:
    """Replaces numbers by their tanh, to 2e-7.

    By torch's sigmoid, which takes half as long as the tanh of torch or NumPy.
    """
    rows *= 2
    view = torch.from_numpy(rows)
    torch.sigmoid(view, out=view)
    rows *= 2
    rows -= 1


class DenseDistribution:
    """The distribution over actions that rows of outputs represent; see ``Distribution``.

    Args:
        layout: of the actions; not squashed.
        groups: of choices.
        outputs: ``(B, layout.outputs)``.
    """

    def __init__(
        self, layout: ActionLayout, groups: Sequence[tuple[int, Any, Any]], outputs: Array
    ) -> None:
        self._parts: list[_Categorical | _Gaussian] = []
        self._count, self._logits = 0, layout.logits
        if layout.discrete is not None:
            self._count = layout.discrete.choices
            self._parts.append(_Categorical(groups, outputs[:, : layout.logits]))
        if layout.continuous is not None:
            self._parts.append(_Gaussian(layout.continuous, outputs[:, layout.logits :]))

    def _encoded(self, encoded: Array) -> Sequence[Array]:
        if len(self._parts) == 1:
            return [encoded]
        return encoded[:, : self._count].astype(np.int64), encoded[:, self._count :]

    def pick(self, noise: Array | None) -> Array:
        """Returns encoded actions ``(B, ...)``; see ``ActionLayout.pick``."""
        if len(self._parts) == 1:
            return self._parts[0].pick(noise)
        noises = [None, None] if noise is None else np.split(noise, [self._logits], 1)
        found = [part.pick(own) for part, own in zip(self._parts, noises, strict=True)]
        return np.concatenate([found[0].astype(np.float32), found[1]], 1)

    def log_prob(self, encoded: Array) -> Array:
        """Returns log-probabilities ``(B,)`` of encoded actions, in nats."""
        parts = zip(self._parts, self._encoded(encoded), strict=True)
        return _sum([part.log_prob(own) for part, own in parts])

    def entropy(self) -> Array:
        """Returns entropies ``(B,)``, in nats."""
        return _sum([part.entropy() for part in self._parts])

    def kl(self, other: DenseDistribution) -> Array:
        """Returns KL(self || other), ``(B,)``, in nats."""
        pairs = zip(self._parts, other._parts, strict=True)
        return _sum([mine.kl(its) for mine, its in pairs])

    def gradient(
        self,
        encoded: Array,
        by_log_prob: Array,
        by_entropy: Array | float,
        by_kl: Array | float = 0.0,
        other: DenseDistribution | None = None,
    ) -> Array:
        """Returns the gradient by the outputs, ``(B, n)``, given those by what depends on them.

        Args:
            encoded: actions whose log-probabilities are meant.
            by_log_prob: ``(B,)``.
            by_entropy: ``(B,)`` or a number.
            by_kl: likewise; read only where there is ``other``.
            other: the distribution to which the KL is meant.
        """
        found = []
        others = [None] * len(self._parts) if other is None else other._parts
        for part, own, its in zip(self._parts, self._encoded(encoded), others, strict=True):
            out = part.by_log_prob(own) * by_log_prob[:, None] + part.by_entropy(by_entropy)
            if its is not None:
                out += part.by_kl(its, by_kl)
            found.append(out)
        return found[0] if len(found) == 1 else np.concatenate(found, 1)


def _groups(layout: Choices) -> list[tuple[int, Any, Any]]:
    """Returns the number of options, the logits and the choices of each group, as indices."""
    if len(layout.groups) == 1:
        return [(layout.groups[0][0], slice(None), slice(None))]
    return [(size, at.numpy(), where.numpy()) for size, at, where in layout.groups]


class _Categorical:
    """Choices, in groups of as many options."""

    def __init__(self, groups: Sequence[tuple[int, Any, Any]], logits: Array) -> None:
        self._groups, self._shape = groups, logits.shape
        self._log_p, self._p = [], []
        for size, at, _ in groups:
            own = torch.from_numpy(logits[:, at].reshape(len(logits), -1, size))
            log_p = torch.log_softmax(own, -1).numpy()
            self._log_p.append(log_p)
            self._p.append(np.exp(log_p))
        self._logits = logits
        self._negative: list[Array] = []  # negative entropies, once they were asked for

    def pick(self, noise: Array | None) -> Array:
        scores = self._logits if noise is None else self._logits + noise
        found = [scores[:, at].reshape(len(scores), -1, size) for size, at, _ in self._groups]
        if len(found) == 1:
            only: Array = found[0].argmax(-1)
            return only
        out = np.empty((len(scores), sum(each.shape[1] for each in found)), np.int64)
        for (_, _, where), own in zip(self._groups, found, strict=True):
            out[:, where] = own.argmax(-1)
        return out

    def _spread(self, groups: Sequence[Array]) -> Array:
        """Returns values of the options in the order of the logits, ``(B, logits)``."""
        if len(groups) == 1:
            return groups[0].reshape(self._shape)
        out = np.empty(self._shape, groups[0].dtype)
        for (_, at, _), own in zip(self._groups, groups, strict=True):
            out[:, at] = own.reshape(len(own), -1)
        return out

    def _chosen(self, choices: Array) -> Sequence[Array]:
        """Returns where the chosen options are in each group, flattened."""
        found = [choices[:, where].reshape(-1) for _, _, where in self._groups]
        return [
            np.arange(0, own.size * size, size) + own
            for own, (size, _, _) in zip(found, self._groups, strict=True)
        ]

    def log_prob(self, choices: Array) -> Array:
        pairs = zip(self._log_p, self._chosen(choices), strict=True)
        return _sum([g.reshape(-1)[at].reshape(len(g), -1).sum(-1) for g, at in pairs])

    def entropy(self) -> Array:
        return _sum([-own.sum((-1, -2)) for own in self._negative_entropies()])

    def _negative_entropies(self) -> Sequence[Array]:
        """Returns those of each choice in each group, ``(B, choices, 1)``."""
        if not self._negative:
            pairs = zip(self._p, self._log_p, strict=True)
            self._negative = [np.einsum("bcn,bcn->bc", p, g)[..., None] for p, g in pairs]
        return self._negative

    def kl(self, other: Any) -> Array:
        rows = zip(self._p, self._log_p, other._log_p, strict=True)
        return _sum([(p * (a - b)).sum((-1, -2)) for p, a, b in rows])

    def by_log_prob(self, choices: Array) -> Array:
        found = [np.negative(p, order="C") for p in self._p]  # so that it can be seen as flat
        for own, at in zip(found, self._chosen(choices), strict=True):
            own.reshape(-1)[at] += 1
        return self._spread(found)

    def by_entropy(self, by_entropy: Array | float) -> Array:
        rows = zip(self._p, self._log_p, self._negative_entropies(), strict=True)
        found = [p * (own - g) for p, g, own in rows]
        return self._spread(found) * _column(by_entropy)

    def by_kl(self, other: Any, by_kl: Array | float) -> Array:
        apart = [a - b for a, b in zip(self._log_p, other._log_p, strict=True)]
        rows = zip(self._p, apart, strict=True)
        found = [p * (each - (p * each).sum(-1, keepdims=True)) for p, each in rows]
        return self._spread(found) * _column(by_kl)


class _Gaussian:
    """Numbers that are clipped to their bounds; see ``distributions``."""

    def __init__(self, layout: Boxes, outputs: Array) -> None:
        self._low, self._high = layout.low.numpy(), layout.high.numpy()
        self._log_scale = layout.log_scale.numpy()
        self._mean, self._log_std = outputs[:, : layout.dims], outputs[:, layout.dims :]
        self._std = np.exp(self._log_std)

    def pick(self, noise: Array | None) -> Array:
        return self._mean if noise is None else self._mean + self._std * noise

    def _tails(self, z: Array, samples: Array) -> tuple[Array, Array, Array]:
        """Returns where a tail is meant, its sign of ``z``, and its log-probability."""
        clipped = (samples >= self._high) | (samples <= self._low)
        sign = np.where(samples >= self._high, -1, 1).astype(z.dtype)
        return clipped, sign, special.log_ndtr(np.where(clipped, sign * z, 0))

    def log_prob(self, samples: Array) -> Array:
        z = (samples - self._mean) / self._std
        log_p = -0.5 * (z * z + LOG_2PI) - self._log_std - self._log_scale
        clipped, _, tail = self._tails(z, samples)
        return np.where(clipped, tail, log_p).sum(-1)  # type: ignore[no-any-return] # an array

    def entropy(self) -> Array:
        own = self._log_std + (0.5 * (1.0 + LOG_2PI) + self._log_scale)
        return own.sum(-1)  # type: ignore[no-any-return] # an array

    def kl(self, other: Any) -> Array:
        ratio = np.exp(2 * (self._log_std - other._log_std))
        apart = ((self._mean - other._mean) / other._std) ** 2
        own = 0.5 * (ratio + apart - 1) - self._log_std + other._log_std
        return own.sum(-1)  # type: ignore[no-any-return] # an array

    def by_log_prob(self, samples: Array) -> Array:
        z = (samples - self._mean) / self._std
        clipped, sign, tail = self._tails(z, samples)
        density = np.exp(-0.5 * (z * z + LOG_2PI) - tail)  # of the border by that of the tail
        by_mean = np.where(clipped, -sign * density, z) / self._std
        by_log_std = np.where(clipped, -sign * density * z, z * z - 1)
        return np.concatenate([by_mean, by_log_std], 1)

    def by_entropy(self, by_entropy: Array | float) -> Array:
        zeros = np.zeros_like(self._mean)
        return np.concatenate([zeros, zeros + _column(by_entropy)], 1)

    def by_kl(self, other: Any, by_kl: Array | float) -> Array:
        by_mean = (self._mean - other._mean) / other._std**2
        by_log_std = np.exp(2 * (self._log_std - other._log_std)) - 1
        return np.concatenate([by_mean, by_log_std], 1) * _column(by_kl)


def _column(values: Array | float) -> Array | float:
    return values[:, None] if isinstance(values, np.ndarray) else values


def _sum(values: list[Array]) -> Array:
    return values[0] if len(values) == 1 else np.sum(values, 0)
