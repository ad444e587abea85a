"""PyTorch trains a small network: ``eager``, its step as a CUDA ``graph``, or through torch's ``compile``."""

from typing import Any

import torch
from loop import main

MIB = 1 << 20
BATCH, WIDTH = 1024, 4096


class Work:
    def __init__(self, kind: str) -> None:
        torch.manual_seed(1)
        device = torch.device("cuda")
        layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
        self._model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 1)).to(device)
        self._forward = torch.compile(self._model) if kind == "compile" else self._model
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self._input = torch.randn(BATCH, WIDTH, device=device)
        self._target = torch.randn(BATCH, 1, device=device)
        self._graph = self._captured() if kind == "graph" else None

    def _train(self) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(self._forward(self._input), self._target).backward()
        self._optimizer.step()

    def _captured(self) -> Any:
        # PyTorch's manual: some steps on a stream of their own before a capture, and gradients made inside it.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._train()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._train()
        return graph

    def step(self) -> None:
        if self._graph is None:
            self._train()
        else:
            self._graph.replay()

    def event(self) -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self, event: Any) -> None:
        event.synchronize()

    def between_ms(self, begin: Any, end: Any) -> float | None:
        return float(begin.elapsed_time(end))

    def take(self, mib: int) -> Any:
        return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")

    def refused(self, error: Exception) -> bool:
        return isinstance(error, torch.cuda.OutOfMemoryError)

    def memory_mib(self) -> tuple[int, int]:
        free, total = torch.cuda.mem_get_info()
        return free // MIB, total // MIB

    def checksum(self) -> float:
        with torch.no_grad():
            return float(sum(parameter.double().sum() for parameter in self._model.parameters()))


main(Work)
