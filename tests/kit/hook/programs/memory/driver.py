"""The driver of a program that gets memory, what it takes in memory of its own, and what the program has got."""

import ctypes
from ctypes import c_char, c_int, c_size_t, c_uint, c_uint64, c_void_p

cu = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20

things: list[int] = []
"""Handles and addresses in the order in which they were got; commands name them by their index."""


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("format", c_int), ("channels", c_uint)]


class Array3dDescriptor(ctypes.Structure):
    _fields_ = [
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    ]


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("win32", c_void_p), ("flags", c_char * 8)]


class PoolProps(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("handles", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("most", c_size_t),
        ("rest", c_char * 56),
    ]


class AllocNode(ctypes.Structure):
    _fields_ = [
        ("pool", PoolProps),
        ("access", c_void_p),
        ("accesses", c_size_t),
        ("bytes", c_size_t),
        ("pointer", c_uint64),
    ]


class ExternalMemory(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("padding", c_int),
        ("fd", c_int),
        ("rest", c_char * 12),
        ("size", c_uint64),
        ("flags", c_uint),
        ("reserved", c_uint * 16),
    ]


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", c_char * 64)]


def got(result: int, thing: "ctypes._SimpleCData[int] | c_void_p") -> int:
    """Keeps what a call has made."""
    if result == 0:
        things.append(thing.value or 0)
    return result
