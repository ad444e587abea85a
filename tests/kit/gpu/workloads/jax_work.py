"""JAX trains a small network with a jitted step. It has no events: what is waited for is the step's own result."""

from typing import Any

import jax
import jax.numpy as jnp
from loop import main

MIB = 1 << 20
BATCH, WIDTH = 1024, 4096
Weights = tuple[jax.Array, ...]


def loss(weights: Weights, inputs: jax.Array, target: jax.Array) -> jax.Array:
    for weight in weights[:-1]:
        inputs = jax.nn.relu(inputs @ weight)
    return jnp.mean((inputs @ weights[-1] - target) ** 2)


@jax.jit
def updated(weights: Weights, inputs: jax.Array, target: jax.Array) -> Weights:
    gradients = jax.grad(loss)(weights, inputs, target)
    return tuple(weight - 1e-3 * gradient for weight, gradient in zip(weights, gradients, strict=True))


class Work:
    def __init__(self, kind: str) -> None:
        assert kind == "eager", kind
        keys = jax.random.split(jax.random.key(1), 5)
        shapes = [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
        self._weights: Weights = tuple(
            jax.random.normal(key, shape) / WIDTH**0.5 for key, shape in zip(keys[:3], shapes, strict=True)
        )
        self._inputs = jax.random.normal(keys[3], (BATCH, WIDTH))
        self._target = jax.random.normal(keys[4], (BATCH, 1))

    def step(self) -> None:
        self._weights = updated(self._weights, self._inputs, self._target)

    def event(self) -> Any:
        return self._weights[-1]

    def wait(self, event: Any) -> None:
        event.block_until_ready()

    def between_ms(self, begin: Any, end: Any) -> float | None:
        return None

    def take(self, mib: int) -> Any:
        # Waited for, since an allocation that fails is told of where its result is used.
        return jnp.zeros(mib * MIB, dtype=jnp.uint8).block_until_ready()

    def refused(self, error: Exception) -> bool:
        return "RESOURCE_EXHAUSTED" in str(error)

    def memory_mib(self) -> tuple[int, int]:
        # JAX knows only the pool that it took of what it saw.
        stats = jax.devices()[0].memory_stats() or {}
        limit, used = stats.get("bytes_limit", 0), stats.get("bytes_in_use", 0)
        return (limit - used) // MIB, limit // MIB

    def checksum(self) -> float:
        return float(sum(weight.sum() for weight in self._weights))


main(Work)
