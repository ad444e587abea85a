"""What a program on a simulated machine begins with that asks nvidia-ml-py."""

HEAD = """
import pynvml as nv
def failure(call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError as error:
        return error.value
nv.nvmlInit()
"""
"""``failure`` is the number of the error that a call ends with, or None."""
